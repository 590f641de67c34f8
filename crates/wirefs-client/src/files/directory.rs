//! Open directories.

use crate::call::CallId;
use std::collections::BTreeSet;
use wirefs_cache::{Known, LongListing, NodeId};
use wirefs_op::{Errno, Time};

/// One open directory: its listing as of when it was opened, or as far as it is here.
#[derive(Debug)]
pub(crate) struct OpenDirectory {
    pub(crate) node: NodeId,
    pub(crate) entries: LongListing,
    /// As of when the listing is known.
    pub(crate) listed: Known,
    /// When the entries were taken: own changes since are not in them.
    pub(crate) taken_at: Time,
    /// Names that were taken back since, and with them what is said of what they mean.
    pub(crate) doubted: BTreeSet<Vec<u8>>,
    /// The kernel keeps what it reads of it.
    pub(crate) is_kept: bool,
    pub(crate) complete: bool,
    pub(crate) error: Option<Errno>,
    /// Something was read from it already, so that offset 0 means that the reader starts again.
    pub(crate) read: bool,
    pub(crate) waiting: Vec<WaitingReaddir>,
}

/// A readdir that waits for more of the listing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingReaddir {
    pub(crate) call: CallId,
    pub(crate) offset: u64,
    pub(crate) bytes_max: u32,
    pub(crate) entry_bytes: u32,
    pub(crate) with_stats: bool,
}
