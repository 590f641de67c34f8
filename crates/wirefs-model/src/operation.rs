//! One operation as a program sees it: paths, open files, system calls.

pub(crate) mod random;

use std::fmt;
use wirefs_op::Timestamp;

/// A relative path.
pub type Path = String;

/// An index of the open files. An operation on an empty slot is skipped; a successful open closes the former file of
/// the slot.
pub type Slot = usize;

/// The number of slots.
pub const SLOTS: usize = 5;

/// The flags of `open(2)`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as the flags are")]
pub struct OpenFlags {
    pub read: bool,
    pub write: bool,
    pub create: bool,
    pub exclusive: bool,
    pub truncate: bool,
    pub append: bool,
    pub no_follow: bool,
    pub directory: bool,
}

impl fmt::Debug for OpenFlags {
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

/// Bytes determined by a number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    /// The number of bytes.
    pub len: usize,
    /// The seed.
    pub seed: u8,
}

impl Pattern {
    /// Returns the bytes. None is zero, so that they differ from a hole.
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

/// A time to set, or `None`.
pub type TimeToSet = Option<Timestamp>;

/// A system call on an open file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the fields are the operands of the system call that the variant is named after"
)]
pub enum FileCall {
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

/// A system call on names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the fields are the operands of the system call that the variant is named after"
)]
pub enum NameCall {
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

/// A system call on the object at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the fields are the operands of the system call that the variant is named after"
)]
pub enum ObjectCall {
    Stat { follow: bool },
    Truncate { size: u64 },
    Chmod { mode: u32 },
    Chown { uid: u32, gid: u32 },
    SetTimes { atime: TimeToSet, mtime: TimeToSet },
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
        /// The slot.
        slot: Slot,
        /// The path.
        path: Path,
        /// The flags.
        open_flags: OpenFlags,
        /// The permission bits of a new file.
        mode: u32,
    },
    /// A system call on the file in a slot.
    File(Slot, FileCall),
    /// A system call on names.
    Name(NameCall),
    /// A system call on the object at a path.
    Object(Path, ObjectCall),
}

impl Operation {
    /// Returns an `lstat` of a path.
    pub fn stat(path: &str) -> Operation {
        Operation::Object(path.into(), ObjectCall::Stat { follow: false })
    }

    /// Returns the paths of the operation.
    pub fn paths(&self) -> Vec<&str> {
        match self {
            Operation::Open { path, .. } | Operation::Object(path, _) => vec![path],
            Operation::File(_, _) => vec![],
            Operation::Name(NameCall::Link { from, to } | NameCall::Rename { from, to, .. }) => {
                vec![from, to]
            }
            Operation::Name(
                NameCall::List { path }
                | NameCall::Mkdir { path, .. }
                | NameCall::Mkfifo { path, .. }
                | NameCall::Symlink { path, .. }
                | NameCall::Unlink { path }
                | NameCall::Rmdir { path }
                | NameCall::Readlink { path },
            ) => vec![path],
        }
    }
}
