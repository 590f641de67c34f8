//! Prefetched data, and the evidence of walks that decides what to prefetch.

mod order;
pub(crate) mod top;
mod unused;
mod walks;
pub(crate) mod window;

use crate::view::misses::Misses;
pub(crate) use order::Place;
use top::Top;
pub use unused::Fate;
pub(crate) use unused::{Item, Unused};
pub(crate) use walks::{Pace, Walks};
use window::Contents;
use wirefs_op::Time;

/// Prefetching since the mount began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefetchStatus {
    /// Background requests.
    pub asked: u64,
    /// Bytes that they brought.
    pub bytes: u64,
    /// Listings of directories.
    pub directories: Fate,
    /// Files with contents.
    pub files: Fate,
    /// Bytes of these contents.
    pub contents: Fate,
}

/// All prefetched data.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// The server has no streams.
    pub(crate) is_refused: bool,
    /// No stream begins before this time, since the last one was useless.
    pub(crate) rests_until: Time,
    /// An earlier mount left what it knew.
    pub(crate) has_memory: bool,
    /// The remaining streams of the top of the tree.
    pub(crate) top: Option<Top>,
    pub(crate) walks: Walks,
    pub(crate) contents: Contents,
    pub(crate) unused: Unused,
    pub(crate) counted: PrefetchStatus,
    pub(crate) misses: Misses,
}

impl Streams {
    /// Notes a new connection, at which the tree may have changed.
    pub(crate) fn attached(&mut self) {
        self.is_refused = false;
        self.walks.clear();
    }

    /// Notes that an earlier mount left its cached data, so the top of the tree need not be prefetched.
    pub(crate) fn remembers(&mut self) {
        self.has_memory = true;
    }

    /// The server has no streams.
    pub(crate) fn refused(&mut self) {
        self.is_refused = true;
    }
}
