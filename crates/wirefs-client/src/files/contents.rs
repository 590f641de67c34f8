//! What is known of one file's contents, and who waits for them.

use crate::call::{CallId, Handle};
use std::collections::{BTreeMap, BTreeSet};
use wirefs_cache::{Known, Ranges};
use wirefs_op::Time;

/// A read that waits for data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    pub(crate) call: CallId,
    pub(crate) handle: Handle,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) since: Time,
    pub(crate) tries: u8,
}

/// Something that waits until the server has answered all writes to a file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Drained {
    /// A flush: answered, after its owner's locks fell.
    Flush { call: CallId, handle: Handle, owner: u64 },
    /// An fsync whose commit is done.
    Fsync { call: CallId, handle: Handle },
    /// A call to be started (again): its request must not overtake the writes.
    Seek { call: CallId, handle: Handle, offset: u64, hole: bool },
}

impl Drained {
    /// The call that waits.
    pub(crate) fn call(&self) -> CallId {
        match self {
            Drained::Flush { call, .. } | Drained::Fsync { call, .. } | Drained::Seek { call, .. } => *call,
        }
    }
}

/// What is known of one file's contents.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) ranges: Ranges,
    /// The `Stat::version` that the ranges are of, own acknowledged changes included.
    pub(super) version: Option<u64>,
    /// As of when that is known to be the file's version, but for own changes since.
    pub(crate) valid: Option<Known>,
    /// Counts the times that something was forgotten: what was asked for before must not be taken in after.
    pub(crate) epoch: u32,
    /// Own changes of the file, writes among them, sent and not answered.
    pub(crate) writes: u32,
    /// Where the writes among them end, and how many end there.
    pub(super) ends: BTreeMap<u64, u32>,
    /// Releases of locks sent and not answered.
    pub(crate) unlocking: u32,
    /// Bytes in them.
    pub(crate) unacknowledged: u64,
    /// Writes answered since the last commit, which a crash of the server's machine could undo.
    pub(crate) uncommitted: bool,
    /// Ranges being fetched, with the epoch of their request.
    pub(crate) fetching: Vec<(u64, u64, u32)>,
    pub(crate) readers: Vec<Reader>,
    pub(crate) drained: Vec<Drained>,
    /// The version that the kernel's pages are of.
    pub(super) kernel_version: Option<u64>,
    /// Owners that took POSIX locks.
    pub(crate) lock_owners: BTreeSet<u64>,
}
