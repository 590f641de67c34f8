//! One random operation, in the terms of a program: paths, open files, system calls.

mod random;

use std::fmt;
use wirefs_op::Timestamp;

/// A relative path, as a program writes it.
pub type Path = String;

/// One of a few places for open files. An operation on an empty one is left out.
pub type Slot = usize;

/// The number of slots.
pub const SLOTS: usize = 6;

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

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the fields are the operands of the system call that the variant is named after"
)]
pub enum Operation {
    Open { slot: Slot, path: Path, how: How, mode: u32 },
    Close { slot: Slot },
    Read { slot: Slot, offset: u64, count: usize },
    Write { slot: Slot, offset: u64, data: Pattern },
    StatOpen { slot: Slot },
    TruncateOpen { slot: Slot, size: u64 },
    Allocate { slot: Slot, mode: u32, offset: u64, length: u64 },
    Copy { from: Slot, from_offset: u64, to: Slot, to_offset: u64, length: u64 },
    Seek { slot: Slot, offset: u64, hole: bool },
    Sync { slot: Slot },
    Truncate { path: Path, size: u64 },
    Stat { path: Path, follow: bool },
    List { path: Path },
    Mkdir { path: Path, mode: u32 },
    Mkfifo { path: Path, mode: u32 },
    Symlink { target: String, path: Path },
    Link { from: Path, to: Path },
    Rename { from: Path, to: Path, flags: u32 },
    Unlink { path: Path },
    Rmdir { path: Path },
    Readlink { path: Path },
    Chmod { path: Path, mode: u32 },
    Chown { path: Path, uid: u32, gid: u32 },
    SetTimes { path: Path, atime: SetTo, mtime: SetTo },
    SetXattr { path: Path, name: String, value: Pattern, flags: u32 },
    ReadXattr { path: Path, name: String },
    ListXattrs { path: Path },
    RemoveXattr { path: Path, name: String },
}

impl Operation {
    /// The slot of an open file that it works on, if it does.
    pub fn slot(&self) -> Option<Slot> {
        match self {
            Operation::Close { slot }
            | Operation::Read { slot, .. }
            | Operation::Write { slot, .. }
            | Operation::StatOpen { slot }
            | Operation::TruncateOpen { slot, .. }
            | Operation::Allocate { slot, .. }
            | Operation::Copy { to: slot, .. }
            | Operation::Seek { slot, .. }
            | Operation::Sync { slot } => Some(*slot),
            Operation::Open { .. }
            | Operation::Truncate { .. }
            | Operation::Stat { .. }
            | Operation::List { .. }
            | Operation::Mkdir { .. }
            | Operation::Mkfifo { .. }
            | Operation::Symlink { .. }
            | Operation::Link { .. }
            | Operation::Rename { .. }
            | Operation::Unlink { .. }
            | Operation::Rmdir { .. }
            | Operation::Readlink { .. }
            | Operation::Chmod { .. }
            | Operation::Chown { .. }
            | Operation::SetTimes { .. }
            | Operation::SetXattr { .. }
            | Operation::ReadXattr { .. }
            | Operation::ListXattrs { .. }
            | Operation::RemoveXattr { .. } => None,
        }
    }

    /// The paths that it names.
    pub fn paths(&self) -> Vec<&str> {
        match self {
            Operation::Link { from, to } | Operation::Rename { from, to, .. } => vec![from, to],
            Operation::Open { path, .. }
            | Operation::Truncate { path, .. }
            | Operation::Stat { path, .. }
            | Operation::List { path }
            | Operation::Mkdir { path, .. }
            | Operation::Mkfifo { path, .. }
            | Operation::Symlink { path, .. }
            | Operation::Unlink { path }
            | Operation::Rmdir { path }
            | Operation::Readlink { path }
            | Operation::Chmod { path, .. }
            | Operation::Chown { path, .. }
            | Operation::SetTimes { path, .. }
            | Operation::SetXattr { path, .. }
            | Operation::ReadXattr { path, .. }
            | Operation::ListXattrs { path }
            | Operation::RemoveXattr { path, .. } => vec![path],
            Operation::Close { .. }
            | Operation::Read { .. }
            | Operation::Write { .. }
            | Operation::StatOpen { .. }
            | Operation::TruncateOpen { .. }
            | Operation::Allocate { .. }
            | Operation::Copy { .. }
            | Operation::Seek { .. }
            | Operation::Sync { .. } => vec![],
        }
    }
}
