//! One object.

use crate::contents::Contents;
use std::collections::BTreeMap;
use wirefs_op::{FileId, Kind, Stat, Timestamp};

/// Names an inode; never used again for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ino(pub(crate) u64);

impl Ino {
    /// As it travels.
    pub(crate) fn id(self) -> FileId {
        FileId { fs: 0, ino: self.0, generation: 1 }
    }
}

/// A name in a directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) ino: Ino,
    /// Where it stands in a listing: entries are listed in the order in which they were made.
    pub(crate) place: u64,
}

/// What an object is made of.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    File(Contents),
    Directory {
        entries: BTreeMap<Vec<u8>, Entry>,
        parent: Ino,
    },
    Symlink(Vec<u8>),
    /// A pipe, socket or device.
    Node(Kind),
}

/// What an object that is to be made is like.
#[derive(Clone, Debug)]
pub(crate) struct New {
    pub(crate) kind: Kind,
    /// Permission bits, the umask applied.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) rdev: u32,
    /// A symbolic link's target.
    pub(crate) target: Vec<u8>,
}

impl New {
    pub(crate) fn of(kind: Kind, mode: u32) -> New {
        New { kind, mode, uid: 0, gid: 0, rdev: 0, target: Vec::new() }
    }
}

/// An object with its attributes.
#[derive(Clone, Debug)]
pub(crate) struct Inode {
    pub(crate) body: Body,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) rdev: u32,
    /// Names, for all but directories; a directory has 1 or, removed, 0.
    pub(crate) nlink: u32,
    /// Never had a name yet, so that it may get a first one.
    pub(crate) is_fresh: bool,
    /// Open files.
    pub(crate) holds: u32,
    pub(crate) atime: Timestamp,
    pub(crate) mtime: Timestamp,
    pub(crate) ctime: Timestamp,
    pub(crate) version: u64,
    pub(crate) xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Inode {
    pub(crate) fn kind(&self) -> Kind {
        match &self.body {
            Body::File(_) => Kind::File,
            Body::Directory { .. } => Kind::Directory,
            Body::Symlink(_) => Kind::Symlink,
            Body::Node(kind) => *kind,
        }
    }

    pub(crate) fn is_directory(&self) -> bool {
        matches!(self.body, Body::Directory { .. })
    }

    /// Its attributes; `subdirectories` counts for a directory's links.
    pub(crate) fn stat(&self, ino: Ino, subdirectories: u32) -> Stat {
        let (size, allocated) = match &self.body {
            Body::File(contents) => (contents.size(), contents.allocated()),
            Body::Directory { entries, .. } => (entries.len() as u64, 0),
            Body::Symlink(target) => (target.len() as u64, 0),
            Body::Node(_) => (0, 0),
        };
        let nlink = match (&self.body, self.nlink) {
            (Body::Directory { .. }, 1) => 2 + subdirectories,
            (_, nlink) => nlink,
        };
        Stat {
            id: ino.id(),
            kind: self.kind(),
            version: self.version,
            mode: self.mode,
            nlink,
            uid: self.uid,
            gid: self.gid,
            rdev: self.rdev,
            size,
            blocks: allocated / 512,
            blksize: 4096,
            atime: self.atime,
            mtime: self.mtime,
            ctime: self.ctime,
            without_xattrs: self.xattrs.is_empty(),
            leased: false,
        }
    }
}
