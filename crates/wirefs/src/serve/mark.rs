//! The mark of a server that has promised something, so that the one after it knows that it has to wait.
//!
//! A client that was promised to hear of changes believes what it knows for some seconds without a word of the server. A
//! server that ends cleanly takes that back first. One that is killed cannot, so it leaves a file behind, which nobody holds
//! locked any more; the next server of the same directory finds it and lets nothing change until that time is over, or all whom the
//! file names have come back.
//!
//! ```text
//!   the run of the kernel, a line
//!   session 32 hexadecimal digits      a line for each that was promised something
//!   end
//! ```

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::fs::FlockOperation;
use wirefs_driver::serve::{Believers, RECOVERY};
use wirefs_op::message::version::SessionId;

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
    left: Mutex<Vec<PathBuf>>,
    own: Mutex<Option<Own>>,
    opened: Instant,
}

/// Our own mark.
#[derive(Debug)]
struct Own {
    path: PathBuf,
    /// Locked as long as we live.
    _locked: File,
    /// Whom it names.
    named: BTreeSet<SessionId>,
}

const SESSION: &str = "session ";
const END: &str = "end\n";

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
        Ok(Marks { dir, prefix, left: Mutex::new(left), own: Mutex::new(None), opened: Instant::now() })
    }

    /// How long what servers before promised may be believed still.
    pub(super) fn recovery(&self) -> Duration {
        let uptime = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let uptime = Duration::try_from(uptime).unwrap_or_default();
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let left =
            left.iter().filter(|mark| named_in(mark).is_none_or(|named| !named.is_empty())).map(|mark| {
                // Who was alive before this run of the kernel ended with the one before, at the latest.
                let is_of_this_run = std::fs::read(mark).is_ok_and(|text| text.starts_with(&kernel_run()));
                if is_of_this_run { RECOVERY } else { RECOVERY.saturating_sub(uptime) }
            });
        left.max().unwrap_or_default()
    }

    /// Whom servers before have promised something. `None`: it cannot be told.
    pub(super) fn believers(&self) -> Option<BTreeSet<SessionId>> {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let named: Option<Vec<BTreeSet<SessionId>>> = left.iter().map(|mark| named_in(mark)).collect();
        Some(named?.into_iter().flatten().collect())
    }

    /// Has our own mark name these, safe on disk before any of them is promised something. Once nobody believes what servers before have
    /// promised, their marks go.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn leave(&self, believers: &Believers) -> Result<()> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let named = own.as_ref().map(|own| &own.named);
        if named.map_or(believers.sessions.is_empty(), |named| *named == believers.sessions) {
            return Ok(());
        }
        if !believers.is_recovering {
            self.forget_left();
        }
        let path = own.as_ref().map_or_else(|| self.own_place(), |own| own.path.clone());
        let written = self.write(&path, &believers.sessions);
        let locked = written.with_context(|| format!("cannot write {}", path.display()))?;
        *own = Some(Own { path, _locked: locked, named: believers.sessions.clone() });
        Ok(())
    }

    /// Where our own mark is to be: not where a process of the same number left one, as in a container, that means something still.
    fn own_place(&self) -> PathBuf {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let place = |nth: usize| self.dir.join(format!("{}{}-{nth}", self.prefix, std::process::id()));
        let free = (0..left.len()).map(place).find(|place| !left.contains(place));
        free.unwrap_or_else(|| place(left.len()))
    }

    /// Puts a mark in its place in one step, locked before it is there.
    fn write(&self, path: &Path, named: &BTreeSet<SessionId>) -> std::io::Result<File> {
        let new = self.dir.join(format!("new-{}{}", self.prefix, std::process::id()));
        // Of a process of the same number that is gone.
        let _gone = std::fs::remove_file(&new);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let mut text = kernel_run();
        text.push(b'\n');
        for SessionId(id) in named {
            text.extend_from_slice(SESSION.as_bytes());
            id.iter().for_each(|byte| text.extend_from_slice(format!("{byte:02x}").as_bytes()));
            text.push(b'\n');
        }
        text.extend_from_slice(END.as_bytes());
        file.write_all(&text)?;
        file.sync_all()?;
        std::fs::rename(&new, path)?;
        File::open(&self.dir)?.sync_all()?;
        Ok(file)
    }

    /// What servers before have promised means nothing any more.
    fn forget_left(&self) {
        for mark in self.left.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _gone = std::fs::remove_file(mark);
        }
    }

    /// The server has ended. Takes our own mark away, unless promises are out, and those of others once they mean nothing
    /// any more.
    pub(super) fn finish(&self, are_leases_out: bool) {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let (Some(own), false) = (own, are_leases_out) {
            let _gone = std::fs::remove_file(own.path);
        }
        if self.opened.elapsed() >= RECOVERY {
            self.forget_left();
        }
    }
}

/// Whom a mark names. `None`: it does not say.
fn named_in(mark: &Path) -> Option<BTreeSet<SessionId>> {
    let text = std::fs::read_to_string(mark).ok()?;
    let lines = text.strip_suffix(END)?.lines();
    lines.filter_map(|line| line.strip_prefix(SESSION)).map(session_of).collect()
}

fn session_of(digits: &str) -> Option<SessionId> {
    let id = u128::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 32)?;
    Some(SessionId(id.to_be_bytes()))
}

/// Whether nobody holds this mark any more.
fn is_left(mark: &Path) -> bool {
    let file = OpenOptions::new().read(true).write(true).open(mark);
    file.is_ok_and(|file| rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok())
}

#[cfg(test)]
mod tests;
