//! Mounts below the export. A mount or unmount changes the meaning of names, and no event reports that.

use super::rate_limit::RateLimit;
use crate::attributes::proc_path;
use crate::failure::uninterrupted;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::fs::File;
use std::io::{Read, Seek};
use std::time::{Duration, Instant};

/// The list is read at most once in this time: on some hosts mounts come and go constantly, and the list is long.
const GAP: Duration = Duration::from_millis(100);
/// Bytes of the list that are read. A longer list counts as changed after every mount on the host.
const LIST_BYTES_MAX: u64 = 4 << 20;
/// The fields of a line that identify a mount: its number, its parent's, its device, its root, its mount point.
const FIELDS: usize = 5;

/// The mounts below one directory.
#[derive(Debug)]
pub(super) struct Mounts {
    /// The kernel's list, which a thread can poll for changes.
    list: File,
    root: OwnedFd,
    /// The mounts at the last look; `None`: unknown.
    known: Option<Vec<Vec<u8>>>,
    check: RateLimit,
}

impl AsFd for Mounts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.list.as_fd()
    }
}

impl Mounts {
    /// The mounts below `root`. `None`: the system has no list.
    pub(super) fn below(root: OwnedFd) -> Option<Mounts> {
        let list = File::open("/proc/thread-self/mountinfo").ok()?;
        let mut mounts = Mounts { list, root, known: None, check: RateLimit::every(GAP) };
        mounts.known = mounts.look();
        Some(mounts)
    }

    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        self.check.deadline(now)
    }

    /// Whether a file system was mounted or unmounted below since the last call. `may_have`: the list has changed
    /// somewhere.
    pub(super) fn have_changed(&mut self, may_have: bool) -> bool {
        if may_have {
            self.check.want();
        }
        if !self.check.take(Instant::now()) {
            return false;
        }
        let now = self.look();
        let is_same = now.is_some() && now == self.known;
        self.known = now;
        !is_same
    }

    fn look(&mut self) -> Option<Vec<Vec<u8>>> {
        let mut list = Vec::new();
        self.list.rewind().ok()?;
        let mut reader = (&mut self.list).take(LIST_BYTES_MAX);
        reader.read_to_end(&mut list).ok()?;
        if reader.limit() == 0 {
            return None;
        }
        // Read each time, because the directory may be moved.
        let root = uninterrupted(|| rustix::fs::readlink(proc_path(self.root.as_fd()), Vec::new())).ok()?;
        Some(below(&list, root.to_bytes()))
    }
}

/// The lines of mounts below `root`, cut after the mount point.
fn below(list: &[u8], root: &[u8]) -> Vec<Vec<u8>> {
    let mut prefix = escaped(root);
    if prefix.last() != Some(&b'/') {
        prefix.push(b'/');
    }
    let lines = list.split(|byte| *byte == b'\n');
    let is_below = |fields: &Vec<&[u8]>| {
        fields.get(FIELDS - 1).is_some_and(|place| place.len() > prefix.len() && place.starts_with(&prefix))
    };
    lines
        .map(|line| line.split(|byte| *byte == b' ').take(FIELDS).collect::<Vec<_>>())
        .filter(is_below)
        .map(|fields| fields.join(&b' '))
        .collect()
}

/// A path as in the list, with white space and backslashes in octal.
fn escaped(path: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(path.len());
    for byte in path {
        match byte {
            b' ' | b'\t' | b'\n' | b'\\' => escaped.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
            byte => escaped.push(*byte),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
