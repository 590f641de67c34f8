//! The window of prefetched contents that no program has used yet.

use crate::call::{CallId, Caller, OpenHow};
use std::collections::BTreeMap;
use wirefs_cache::TreeNodeId;
use wirefs_op::Time;

/// Files above this many bytes are no small files. The server has the same bound.
pub(crate) const SMALL_BYTES_MAX: u32 = 64 * 1024;

/// The window at first, at least and at most, in bytes: half of, an eighth of and eight times what a wire of 100 Mbit/s and 85 ms
/// holds.
pub(crate) const WINDOW_BYTES: u64 = 512 * 1024;

pub(crate) const WINDOW_BYTES_MIN: u64 = 128 * 1024;

pub(crate) const WINDOW_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// An open that waits for contents in transit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joined {
    pub(crate) call: CallId,
    pub(crate) caller: Caller,
    pub(crate) node: TreeNodeId,
    pub(crate) how: OpenHow,
}

/// The window of requested contents.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) window: u64,
    /// Directories as a whole, and files, whose contents are in transit, with the expected bytes.
    pub(crate) coming: BTreeMap<TreeNodeId, u64>,
    pub(crate) coming_bytes: u64,
    pub(crate) joined: BTreeMap<TreeNodeId, Vec<Joined>>,
    /// The last position of a program that reads one directory after the other, and its time.
    pub(crate) front: Option<(TreeNodeId, Time)>,
    /// After this directory there was nothing left to request.
    pub(crate) exhausted: Option<TreeNodeId>,
    /// Bytes in the small files of the last directory that was fetched as a whole: the next may have as much.
    pub(crate) whole_bytes: u64,
}

impl Default for Contents {
    fn default() -> Contents {
        let (coming, joined) = (BTreeMap::new(), BTreeMap::new());
        Contents {
            window: WINDOW_BYTES,
            coming,
            coming_bytes: 0,
            joined,
            front: None,
            exhausted: None,
            whole_bytes: 0,
        }
    }
}

impl Contents {
    pub(crate) fn used(&mut self, bytes: u64) {
        self.window = (self.window + bytes).min(WINDOW_BYTES_MAX);
    }

    pub(crate) fn wasted(&mut self, bytes: u64) {
        self.window = self.window.saturating_sub(bytes).max(WINDOW_BYTES_MIN);
    }

    pub(crate) fn comes(&mut self, node: TreeNodeId, bytes: u64) {
        self.coming_bytes += bytes;
        if let Some(before) = self.coming.insert(node, bytes) {
            self.coming_bytes -= before;
        }
    }
}
