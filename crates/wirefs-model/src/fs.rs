//! The reference file system: inodes, names, and what POSIX (as Linux reads it) says each operation does to them.
//! Symbolic links are never followed here, permissions never checked.

mod attributes;
mod disk;
mod inode;
mod io;
mod names;
mod rename;

pub(crate) use disk::Disk;
pub(crate) use inode::{Body, Ino, Inode, New};
pub(crate) use names::check_target;
pub(crate) use rename::check_flags;

use std::collections::BTreeMap;
use wirefs_op::{Errno, Kind, Timestamp};

/// The root directory.
pub(crate) const ROOT: Ino = Ino(1);

/// Where no time is set, the clock is a counter, whose seconds start here: later than any time that a test sets.
pub(crate) const COUNTED_SECS: i64 = 1 << 40;

/// A whole file system in memory.
#[derive(Clone, Debug)]
pub(crate) struct Fs {
    inodes: BTreeMap<Ino, Inode>,
    ticks: u64,
    /// Numbers of inodes that were lost by a power cut: they are used again, as xfs does.
    lost: Vec<u64>,
    /// The time that was set, and the last one that was given to anything.
    clock: Option<(Timestamp, Timestamp)>,
}

impl Fs {
    pub(crate) fn new() -> Fs {
        let mut fs = Fs { inodes: BTreeMap::new(), ticks: 0, lost: Vec::new(), clock: None };
        let entries = BTreeMap::new();
        fs.add(Body::Directory { entries, parent: ROOT }, &New::of(Kind::Directory, 0o755));
        if let Some(root) = fs.inodes.get_mut(&ROOT) {
            root.nlink = 1;
        }
        fs
    }

    /// Counts on; no two calls give the same.
    fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }

    fn now(&mut self) -> Timestamp {
        let tick = self.tick();
        match &mut self.clock {
            Some((now, last)) => {
                *last = (*now).max(last.next());
                *last
            }
            None => Timestamp { secs: COUNTED_SECS + tick as i64, nanos: 0 },
        }
    }

    /// It is this time from now on. The first time that is set is the one at which all that is there was made.
    pub(crate) fn set_time(&mut self, now: Timestamp) {
        if self.clock.is_none() {
            self.inodes.values_mut().for_each(|inode| (inode.mtime, inode.ctime) = (now, now));
        }
        self.clock = Some((now, self.clock.map_or(now, |(_, last)| last)));
    }

    fn add(&mut self, body: Body, new: &New) -> Ino {
        // The counter is also the source of inode numbers. The root's is the first.
        let now = self.now();
        let ino = Ino(self.lost.pop().unwrap_or(self.ticks));
        let inode = Inode {
            body,
            mode: new.mode & 0o7777,
            uid: new.uid,
            gid: new.gid,
            rdev: new.rdev,
            nlink: 0,
            is_fresh: true,
            holds: 0,
            atime: now,
            mtime: now,
            ctime: now,
            version: self.ticks,
            xattrs: BTreeMap::new(),
        };
        self.inodes.insert(ino, inode);
        ino
    }

    pub(crate) fn inode(&self, ino: Ino) -> Result<&Inode, Errno> {
        self.inodes.get(&ino).ok_or(Errno::Stale)
    }

    fn inode_mut(&mut self, ino: Ino) -> Result<&mut Inode, Errno> {
        self.inodes.get_mut(&ino).ok_or(Errno::Stale)
    }

    /// Notes a change of attributes.
    fn touch(&mut self, ino: Ino) {
        let now = self.now();
        let version = self.ticks;
        if let Some(inode) = self.inodes.get_mut(&ino) {
            inode.ctime = now;
            inode.version = version;
        }
    }

    /// Notes a change of contents.
    fn modify(&mut self, ino: Ino) {
        self.touch(ino);
        if let Some(inode) = self.inodes.get_mut(&ino) {
            inode.mtime = inode.ctime;
        }
    }

    /// Keeps an inode although it may lose its last name.
    pub(crate) fn hold(&mut self, ino: Ino) {
        if let Some(inode) = self.inodes.get_mut(&ino) {
            inode.holds += 1;
        }
    }

    /// Gives back a hold.
    pub(crate) fn release(&mut self, ino: Ino) {
        if let Some(inode) = self.inodes.get_mut(&ino) {
            inode.holds = inode.holds.saturating_sub(1);
        }
        self.forget_if_unused(ino);
    }

    fn forget_if_unused(&mut self, ino: Ino) {
        if self.inodes.get(&ino).is_some_and(|inode| inode.nlink == 0 && inode.holds == 0 && ino != ROOT) {
            self.inodes.remove(&ino);
        }
    }
}
