//! One random operation, in the terms of a program: paths, open files, system calls.

pub(crate) mod random;

use std::fmt;
use wirefs_op::Timestamp;

/// A relative path, as a program writes it.
pub type Path = String;

/// One of a few places for open files. An operation on an empty one is left out; an open that succeeds closes what was
/// there.
pub type Slot = usize;

/// The number of slots.
pub const SLOTS: usize = 5;

/// How a file is opened: the bits of `open(2)`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as the flags are")]
pub struct How {
    pub read: bool,
    pub write: bool,
    pub create: bool,
    pub exclusive: bool,
    pub truncate: bool,
    pub append: bool,
    pub no_follow: bool,
    pub directory: bool,
}

impl fmt::Debug for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = [
            (self.read, "read"),
            (self.write, "write"),
            (self.create, "create"),
            (self.exclusive, "exclusive"),
            (self.truncate, "truncate"),
            (self.append, "append"),
            (self.no_follow, "no_follow"),
            (self.directory, "directory"),
        ];
        let set: Vec<&str> = bits.into_iter().filter(|(set, _)| *set).map(|(_, name)| name).collect();
        f.write_str(&set.join("|"))
    }
}

/// Bytes that one number determines.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    /// How many bytes.
    pub len: usize,
    /// Which.
    pub seed: u8,
}

impl Pattern {
    /// The bytes; none of them zero, so that they differ from a hole.
    pub fn bytes(self) -> Vec<u8> {
        let byte = |at: usize| (at as u64).wrapping_mul(31).wrapping_add(u64::from(self.seed)) % 255 + 1;
        (0..self.len).map(|at| byte(at + at / 251) as u8).collect()
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern {{ len: {}, seed: {} }}", self.len, self.seed)
    }
}

/// A time to set, or none.
pub type SetTo = Option<Timestamp>;

/// What is done with an open file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the fields are the operands of the system call that the variant is named after"
)]
pub enum OnFile {
    Close,
    Read {
        offset: u64,
        count: usize,
    },
    Write {
        offset: u64,
        data: Pattern,
    },
    Stat,
    Truncate {
        size: u64,
    },
    Allocate {
        mode: u32,
        offset: u64,
        length: u64,
    },
    /// Copies from another slot into this file.
    CopyFrom {
        from: Slot,
        from_offset: u64,
        to_offset: u64,
        length: u64,
    },
    Seek {
        offset: u64,
        hole: bool,
    },
    Sync,
}

/// What is done with names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the fields are the operands of the system call that the variant is named after"
)]
pub enum OnName {
    List { path: Path },
    Mkdir { path: Path, mode: u32 },
    Mkfifo { path: Path, mode: u32 },
    Symlink { target: String, path: Path },
    Link { from: Path, to: Path },
    Rename { from: Path, to: Path, flags: u32 },
    Unlink { path: Path },
    Rmdir { path: Path },
    Readlink { path: Path },
}

/// What is done with the object at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the fields are the operands of the system call that the variant is named after"
)]
pub enum OnObject {
    Stat { follow: bool },
    Truncate { size: u64 },
    Chmod { mode: u32 },
    Chown { uid: u32, gid: u32 },
    SetTimes { atime: SetTo, mtime: SetTo },
    SetXattr { name: String, value: Pattern, flags: u32 },
    ReadXattr { name: String },
    ListXattrs,
    RemoveXattr { name: String },
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Opens a file into a slot.
    Open {
        /// Which slot.
        slot: Slot,
        /// What to open.
        path: Path,
        /// How.
        how: How,
        /// The permission bits of a new file.
        mode: u32,
    },
    /// Works on the file that is open in a slot.
    File(Slot, OnFile),
    /// Works on names.
    Name(OnName),
    /// Works on the object at a path.
    Object(Path, OnObject),
}

impl Operation {
    /// Asks for the attributes of what is at a path, a link itself.
    pub fn stat(path: &str) -> Operation {
        Operation::Object(path.into(), OnObject::Stat { follow: false })
    }

    /// The paths that it names.
    pub fn paths(&self) -> Vec<&str> {
        match self {
            Operation::Open { path, .. } | Operation::Object(path, _) => vec![path],
            Operation::File(_, _) => vec![],
            Operation::Name(OnName::Link { from, to } | OnName::Rename { from, to, .. }) => vec![from, to],
            Operation::Name(
                OnName::List { path }
                | OnName::Mkdir { path, .. }
                | OnName::Mkfifo { path, .. }
                | OnName::Symlink { path, .. }
                | OnName::Unlink { path }
                | OnName::Rmdir { path }
                | OnName::Readlink { path },
            ) => vec![path],
        }
    }
}
