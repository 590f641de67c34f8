//! The cached contents of one file, and the calls that wait for them.

use crate::call::{CallId, Handle};
use crate::view::files::coalesced::Coalesced;
use crate::view::files::lockers::Lockers;
use crate::view::files::unstable::Uncommitted;
use std::collections::BTreeMap;
use wirefs_cache::{CachedRanges, Freshness};
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
    /// It is an open that waits for all of the file.
    pub(crate) opens: Option<Opens>,
}

/// The progress of an open that waits for a whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opens {
    /// The file is being fetched.
    Fetching,
    /// The file has arrived, and its version is checked once more.
    Confirming,
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
    /// An open that waits for all of the file.
    Open(Reader),
}

impl Drained {
    /// The call that waits.
    pub(crate) fn call(&self) -> CallId {
        match self {
            Drained::Flush { call, .. } | Drained::Fsync { call, .. } | Drained::Seek { call, .. } => *call,
            Drained::Open(opening) => opening.call,
        }
    }
}

/// The cached contents of one file.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) ranges: CachedRanges,
    /// The `Stat::version` that the ranges are of, own acknowledged changes included.
    pub(super) version: Option<u64>,
    /// The time at which `version` was known to be the file's version, apart from own changes since.
    pub(crate) valid: Option<Freshness>,
    /// Counts the invalidations. Data that was requested before one must not be taken in after it.
    pub(crate) epoch: u32,
    /// Own changes of the file, writes among them, sent and not answered.
    pub(crate) writes: u32,
    /// The cached attributes include the effects of these changes.
    pub(super) is_ahead: bool,
    /// The ends of the writes among them, each with the number of writes that end there.
    pub(super) ends: BTreeMap<u64, u32>,
    /// The expected end of the last of them, if it is an append.
    pub(crate) appended: Option<u64>,
    /// Bytes in them.
    pub(crate) unacknowledged: u64,
    /// Writes answered since the last commit, which a crash of the server's machine could undo.
    pub(crate) uncommitted: bool,
    /// Coalesced writes, not sent yet.
    pub(crate) coalesced: Coalesced,
    /// Changes answered since the last commit, where they are to be sent again to a server that lost them.
    pub(crate) changes: Uncommitted,
    /// Ranges being fetched, with the epoch of their request.
    pub(crate) fetching: Vec<(u64, u64, u32)>,
    pub(crate) readers: Vec<Reader>,
    pub(crate) drained: Vec<Drained>,
    /// The version that the kernel's pages are of.
    pub(super) kernel_version: Option<u64>,
    /// The kernel was told to forget all of it, and has neither read nor written since.
    pub(super) kernel_is_empty: bool,
    /// When it was told so the last time, since others change the file.
    pub(super) kernel_emptied: Option<Time>,
    /// The open file whose own copy was changed last.
    pub(crate) written_by: Option<Handle>,
    /// The owners of locks.
    pub(crate) lockers: Lockers,
    /// It was locked while others could change it. The disk cache is not used then: it goes by versions, and data that was read in the
    /// middle of a `write` at the server may be kept there under the version after it.
    pub(crate) is_locked: bool,
}

impl Contents {
    /// The first stretch of `start..end` that is neither known nor being fetched.
    pub(crate) fn next_gap(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let mut at = start;
        while at < end {
            let (from, mut to) = self.ranges.first_gap(at, end)?;
            let mut covered = None;
            for (a, b, _) in self.fetching.iter().filter(|(_, _, epoch)| *epoch == self.epoch) {
                if *a <= from && from < *b {
                    covered = covered.max(Some(*b));
                } else if *a > from {
                    to = to.min(*a);
                }
            }
            match covered {
                Some(past) => at = past,
                None => return (from < to).then_some((from, to)),
            }
        }
        None
    }
}
