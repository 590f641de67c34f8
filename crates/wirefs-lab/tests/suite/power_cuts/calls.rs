//! A storm, made in a mount and in a plain directory.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::fs::XattrFlags;

use super::storm::{Call, Effect, Step, Storm};
use super::synced::Synced;
use super::{Progress, Work};
use crate::sys::close;

/// Descriptors that stay open at once.
const OPEN_MAX: usize = 6;
/// Steps that are told where a call fails.
const LATEST: u64 = 300;
const XATTR: &str = "user.n";

/// The storm of a seed.
pub(super) struct StormWork {
    mount: PathBuf,
    reference: PathBuf,
    seed: u64,
    synced: Mutex<Synced>,
}

impl StormWork {
    pub(super) fn new(mount: &Path, reference: &Path, seed: u64) -> StormWork {
        let (mount, reference) = (mount.to_owned(), reference.to_owned());
        StormWork { mount, reference, seed, synced: Mutex::default() }
    }
}

impl Work for StormWork {
    type Promises = Synced;

    fn run(&self, progress: &Progress) {
        let mut storm = Storm::new(self.seed);
        let (mut in_mount, mut in_reference) = (Open::default(), Open::default());
        let mut latest: VecDeque<String> = VecDeque::new();
        while let Some(number) = progress.next_step() {
            let step = storm.next();
            self.synced.lock().unwrap().before(&step.effects);
            if latest.len() as u64 == LATEST {
                latest.pop_front();
            }
            latest.push_back(format!("{number}: {:?}, file {:?}", step.call, step.file));
            let failed = |error: io::Error| {
                let latest = Vec::from(latest.clone()).join("\n");
                panic!(
                    "step {number}, {:?}, of file {:?}: {error}; the latest steps:\n{latest}",
                    step.call, step.file
                )
            };
            in_mount.apply(&step, &self.mount).unwrap_or_else(failed);
            in_reference.apply(&step, &self.reference).unwrap_or_else(failed);
            self.synced.lock().unwrap().after(&step.effects, &self.reference);
        }
    }

    fn promises(&self) -> Synced {
        self.synced.lock().unwrap().clone()
    }

    fn missing(&self, before: &Synced, after: &Synced, disk: &Path) -> Vec<String> {
        before.missing(after, disk)
    }
}

/// Descriptors that stay open, by their file.
#[derive(Default)]
struct Open(BTreeMap<u64, File>);

impl Open {
    /// Makes the call below `root`.
    fn apply(&mut self, step: &Step, root: &Path) -> io::Result<()> {
        for effect in &step.effects {
            if let Effect::Gone(file) = effect {
                self.0.remove(file).map_or(Ok(()), close)?;
            }
        }
        match (&step.call, step.file) {
            (Call::Patch(name, offset, text), Some(file)) => {
                self.patch(file, &root.join(name), *offset, &text.0)
            }
            (call, _) => apply(call, root),
        }
    }

    fn patch(&mut self, file: u64, path: &Path, offset: u64, text: &[u8]) -> io::Result<()> {
        if let Some(open) = self.0.get(&file) {
            return open.write_all_at(text, offset);
        }
        if self.0.len() >= OPEN_MAX
            && let Some((_, oldest)) = self.0.pop_first()
        {
            close(oldest)?;
        }
        let open = OpenOptions::new().write(true).open(path)?;
        open.write_all_at(text, offset)?;
        self.0.insert(file, open);
        Ok(())
    }
}

/// An error, with the system call that gave it.
fn named<T>(call: &str, done: io::Result<T>) -> io::Result<T> {
    done.map_err(|error| io::Error::new(error.kind(), format!("{call}: {error}")))
}

fn apply(call: &Call, root: &Path) -> io::Result<()> {
    let at = |name: &String| root.join(name);
    match call {
        Call::Write(name, text) => {
            let mut file = File::create(at(name))?;
            file.write_all(&text.0)?;
            close(file)
        }
        Call::Patch(name, offset, text) => {
            OpenOptions::new().write(true).open(at(name))?.write_all_at(&text.0, *offset)
        }
        Call::Append(name, text) => {
            let mut file = named("open", OpenOptions::new().append(true).open(at(name)))?;
            named("write", file.write_all(&text.0))?;
            named("close", close(file))
        }
        Call::Truncate(name, size) => {
            let file = OpenOptions::new().write(true).open(at(name))?;
            file.set_len(*size)?;
            close(file)
        }
        Call::Chmod(name, mode) => fs::set_permissions(at(name), Permissions::from_mode(*mode)),
        Call::SetXattr(name, value) => {
            Ok(rustix::fs::setxattr(at(name), XATTR, &value.0, XattrFlags::empty())?)
        }
        Call::RemoveXattr(name) => Ok(rustix::fs::removexattr(at(name), XATTR)?),
        Call::Rename(from, to) => fs::rename(at(from), at(to)),
        Call::Link(from, to) => fs::hard_link(at(from), at(to)),
        Call::Symlink(target, name) => symlink(target, at(name)),
        Call::Unlink(name) => fs::remove_file(at(name)),
        Call::Mkdir(name) => fs::create_dir(at(name)),
        Call::Rmdir(name) => fs::remove_dir(at(name)),
        Call::SyncFile(name) | Call::SyncDirectory(name) => File::open(at(name))?.sync_all(),
    }
}
