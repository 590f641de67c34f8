//! Inodes.

use crate::contents::FileContents;
use std::collections::BTreeMap;
use wirefs_op::{FileId, Kind, Stat, Timestamp};

/// An inode number. Outside power cuts it is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ModelIno(pub(crate) u64);

impl ModelIno {
    /// Returns the inode id of the protocol.
    pub(crate) fn id(self) -> FileId {
        FileId { fs: 0, ino: self.0, generation: 1 }
    }
}

/// A directory entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InodeEntry {
    pub(crate) ino: ModelIno,
    /// The position in a listing: entries are listed in order of creation.
    pub(crate) cookie: u64,
}

/// The type-specific part of an inode.
#[derive(Clone, Debug)]
pub(crate) enum InodeBody {
    File(FileContents),
    Directory {
        entries: BTreeMap<Vec<u8>, InodeEntry>,
        parent: ModelIno,
    },
    Symlink(Vec<u8>),
    /// A pipe, socket or device.
    Node(Kind),
}

/// The properties of an inode to create.
#[derive(Clone, Debug)]
pub(crate) struct NewInode {
    pub(crate) kind: Kind,
    /// The permission bits, after the umask.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) rdev: u32,
    /// The target of a symbolic link.
    pub(crate) target: Vec<u8>,
}

impl NewInode {
    pub(crate) fn of(kind: Kind, mode: u32) -> NewInode {
        NewInode { kind, mode, uid: 0, gid: 0, rdev: 0, target: Vec::new() }
    }
}

/// An inode with its attributes.
#[derive(Clone, Debug)]
pub(crate) struct Inode {
    pub(crate) body: InodeBody,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) rdev: u32,
    /// The number of names, except for directories: 1, or 0 if removed.
    pub(crate) nlink: u32,
    /// Whether it never had a name, so that it may get a first one.
    pub(crate) is_fresh: bool,
    /// The number of open files.
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
            InodeBody::File(_) => Kind::File,
            InodeBody::Directory { .. } => Kind::Directory,
            InodeBody::Symlink(_) => Kind::Symlink,
            InodeBody::Node(kind) => *kind,
        }
    }

    pub(crate) fn is_directory(&self) -> bool {
        matches!(self.body, InodeBody::Directory { .. })
    }

    /// Returns the attributes. `subdirectories` counts for the links of a directory.
    pub(crate) fn stat(&self, ino: ModelIno, subdirectories: u32) -> Stat {
        let (size, allocated) = match &self.body {
            InodeBody::File(contents) => (contents.size(), contents.allocated()),
            InodeBody::Directory { entries, .. } => (entries.len() as u64, 0),
            InodeBody::Symlink(target) => (target.len() as u64, 0),
            InodeBody::Node(_) => (0, 0),
        };
        let nlink = match (&self.body, self.nlink) {
            (InodeBody::Directory { .. }, 1) => 2 + subdirectories,
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
