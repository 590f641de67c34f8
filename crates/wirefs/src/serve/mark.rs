//! The mark of a server that has promised something, so that the one after it knows that it has to wait.
//!
//! A client that was promised to hear of changes believes what it knows for some seconds without a word of the server. A
//! server that ends cleanly takes that back first. One that is killed cannot, so it leaves a file behind, which nobody holds
//! locked any more; the next server of the same directory finds it and lets nothing change until that time is over.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::fs::FlockOperation;
use wirefs_driver::serve::RECOVERY;

use super::boot::kernel_run;
use crate::mountpoint::hash;
use crate::places;

/// The marks of one exported directory.
#[derive(Debug)]
pub(super) struct Marks {
    dir: PathBuf,
    /// What the names of this directory's marks begin with.
    prefix: String,
    /// Left behind by servers that are gone.
    left: Vec<PathBuf>,
    /// Our own, locked as long as we live.
    own: Mutex<Option<(PathBuf, File)>>,
    opened: Instant,
}

impl Marks {
    /// Looks for the marks of servers of `exported` that are gone.
    ///
    /// # Errors
    /// There is no place for marks, or it is not this user's alone.
    pub(super) fn open(exported: &Path) -> Result<Marks> {
        Marks::open_in(places::state_dir()?.join("exports"), exported)
    }

    fn open_in(dir: PathBuf, exported: &Path) -> Result<Marks> {
        places::make_private(&dir)?;
        let found =
            std::fs::metadata(exported).with_context(|| format!("cannot look at {}", exported.display()))?;
        let place = [found.dev().to_le_bytes(), found.ino().to_le_bytes()].concat();
        let prefix = format!("{:016x}-", hash(&place));
        let names = std::fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))?;
        let of_this = |name: &std::fs::DirEntry| name.file_name().to_string_lossy().starts_with(&prefix);
        let left =
            names.flatten().filter(of_this).map(|name| name.path()).filter(|mark| is_left(mark)).collect();
        Ok(Marks { dir, prefix, left, own: Mutex::new(None), opened: Instant::now() })
    }

    /// How long what servers before promised may be believed still.
    pub(super) fn recovery(&self) -> Duration {
        let uptime = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let uptime = Duration::try_from(uptime).unwrap_or_default();
        let left = self.left.iter().map(|mark| {
            // Who was alive before this run of the kernel ended with the one before, at the latest.
            let is_of_this_run = std::fs::read(mark).is_ok_and(|run| run == kernel_run());
            if is_of_this_run { RECOVERY } else { RECOVERY.saturating_sub(uptime) }
        });
        left.max().unwrap_or_default()
    }

    /// Leaves our own mark, safe on disk. Once; nothing when it is there.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn leave(&self) -> Result<()> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if own.is_some() {
            return Ok(());
        }
        let path = self.dir.join(format!("{}{}", self.prefix, std::process::id()));
        let write = || -> std::io::Result<File> {
            // Of a process of the same number that is gone.
            let _gone = std::fs::remove_file(&path);
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            file.write_all(&kernel_run())?;
            file.sync_all()?;
            File::open(&self.dir)?.sync_all()?;
            Ok(file)
        };
        let file = write().with_context(|| format!("cannot write {}", path.display()))?;
        *own = Some((path, file));
        Ok(())
    }

    /// The server has ended. Takes our own mark away, unless promises are out, and those of others once they mean nothing
    /// any more.
    pub(super) fn finish(&self, are_leases_out: bool) {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let (Some((path, _locked)), false) = (own, are_leases_out) {
            let _gone = std::fs::remove_file(path);
        }
        if self.opened.elapsed() >= RECOVERY {
            for mark in &self.left {
                let _gone = std::fs::remove_file(mark);
            }
        }
    }
}

/// Whether nobody holds this mark any more.
fn is_left(mark: &Path) -> bool {
    let file = OpenOptions::new().read(true).write(true).open(mark);
    file.is_ok_and(|file| rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok())
}

#[cfg(test)]
mod tests;
