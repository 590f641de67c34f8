//! The reference file system: inodes, names, and the effects of each operation according to POSIX on Linux. It never
//! follows symbolic links and never checks permissions.

mod attributes;
mod crash_disk;
mod inode;
mod io;
mod names;
mod rename;

pub(crate) use crash_disk::CrashDisk;
pub(crate) use inode::{Inode, InodeBody, ModelIno, NewInode};
pub(crate) use names::check_target;
pub(crate) use rename::check_flags;

use std::collections::BTreeMap;
use wirefs_op::{Errno, Kind, Timestamp};

/// The root directory.
pub(crate) const ROOT: ModelIno = ModelIno(1);

/// Without a set time, the clock is a counter. Its seconds start here, later than any time that a test sets.
pub(crate) const COUNTER_START_SECS: i64 = 1 << 40;

/// A file system in memory.
#[derive(Clone, Debug)]
pub(crate) struct ModelFs {
    inodes: BTreeMap<ModelIno, Inode>,
    ticks: u64,
    /// Inode numbers lost in a power cut, which are used again, as on xfs.
    lost: Vec<u64>,
    /// The set time, and the last time given to an inode.
    clock: Option<(Timestamp, Timestamp)>,
}

impl ModelFs {
    pub(crate) fn new() -> ModelFs {
        let mut fs = ModelFs { inodes: BTreeMap::new(), ticks: 0, lost: Vec::new(), clock: None };
        let entries = BTreeMap::new();
        fs.add(InodeBody::Directory { entries, parent: ROOT }, &NewInode::of(Kind::Directory, 0o755));
        if let Some(root) = fs.inodes.get_mut(&ROOT) {
            root.nlink = 1;
        }
        fs
    }

    /// Increments and returns the counter.
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
            None => Timestamp { secs: COUNTER_START_SECS + tick as i64, nanos: 0 },
        }
    }

    /// Sets the time. The first call also sets the times of all existing inodes.
    pub(crate) fn set_time(&mut self, now: Timestamp) {
        if self.clock.is_none() {
            self.inodes.values_mut().for_each(|inode| (inode.mtime, inode.ctime) = (now, now));
        }
        self.clock = Some((now, self.clock.map_or(now, |(_, last)| last)));
    }

    fn add(&mut self, body: InodeBody, new: &NewInode) -> ModelIno {
        // The counter is also the source of inode numbers; the root has the first.
        let now = self.now();
        let ino = ModelIno(self.lost.pop().unwrap_or(self.ticks));
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

    pub(crate) fn inode(&self, ino: ModelIno) -> Result<&Inode, Errno> {
        self.inodes.get(&ino).ok_or(Errno::Stale)
    }

    fn inode_mut(&mut self, ino: ModelIno) -> Result<&mut Inode, Errno> {
        self.inodes.get_mut(&ino).ok_or(Errno::Stale)
    }

    /// Records a change of attributes.
    fn touch(&mut self, ino: ModelIno) {
        let now = self.now();
        let version = self.ticks;
        if let Some(inode) = self.inodes.get_mut(&ino) {
            inode.ctime = now;
            inode.version = version;
        }
    }

    /// Records a change of contents.
    fn modify(&mut self, ino: ModelIno) {
        self.touch(ino);
        if let Some(inode) = self.inodes.get_mut(&ino) {
            inode.mtime = inode.ctime;
        }
    }

    /// Keeps an inode alive even without names.
    pub(crate) fn hold(&mut self, ino: ModelIno) {
        if let Some(inode) = self.inodes.get_mut(&ino) {
            inode.holds += 1;
        }
    }

    /// Releases one hold.
    pub(crate) fn release(&mut self, ino: ModelIno) {
        if let Some(inode) = self.inodes.get_mut(&ino) {
            inode.holds = inode.holds.saturating_sub(1);
        }
        self.free_if_unused(ino);
    }

    fn free_if_unused(&mut self, ino: ModelIno) {
        if self.inodes.get(&ino).is_some_and(|inode| inode.nlink == 0 && inode.holds == 0 && ino != ROOT) {
            self.inodes.remove(&ino);
        }
    }
}
