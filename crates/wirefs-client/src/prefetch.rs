//! Prefetch streams: when one starts, and which one follows when it has ended.

mod asking;
mod contents;
mod nearby;
mod top;

pub(crate) use asking::{are_usable, coming_figures};

use crate::pending::{FindBounds, FindTotals};
use crate::sending::Sender;
use std::time::Duration;
use wirefs_cache::{ROOT, TreeNodeId};

/// After a useless stream, no stream begins for this long.
const REST: Duration = Duration::from_secs(10);

/// The maximum size of a stream of all listings below one directory, in bytes: about 25,000 entries.
const SUBTREE_BYTES_MAX: u32 = 1024 * 1024;

/// The maximum number of entries of such a stream.
const SUBTREE_ENTRIES_MAX: u32 = 64 * 1024;

/// The number of directories that are prefetched beyond the end of a stream: at first, and at most.
const AHEAD: (usize, usize) = (8, 64);

/// The maximum number of bytes for each of them.
const AHEAD_BYTES_MAX: u32 = 64 * 1024;

impl Sender<'_> {
    /// Handles a request for an unknown directory: for its listing, or for a name in it.
    pub(crate) fn directory_missed(&mut self, dir: TreeNodeId) {
        if dir == ROOT || !self.view.may_stream(self.requests) || self.view.is_coming(self.requests, dir) {
            return;
        }
        let (pace, parent) = (self.view.pace(self.requests), self.view.names.parent(dir));
        if self.view.prefetch.walks.enters(parent, dir, pace) {
            let top = self.view.walk_top(self.requests, parent);
            self.stream(top, Some(dir));
        }
    }

    /// A name was found to be a directory in one that was not listed.
    pub(crate) fn directory_found(&mut self, parent: TreeNodeId, dir: TreeNodeId) {
        if self.view.may_stream(self.requests) && !self.view.is_coming(self.requests, dir) {
            let pace = self.view.pace(self.requests);
            if self.view.prefetch.walks.enters(parent, dir, pace) {
                self.stream(parent, None);
            }
        }
    }

    /// Handles several lookups in a directory without a listing. If some of the names were directories, requests a
    /// stream of the listing and those below it. Returns whether one was, or had been, requested.
    pub(crate) fn streams_instead(&mut self, dir: TreeNodeId) -> bool {
        if !self.view.may_stream(self.requests) {
            return false;
        }
        let pace = self.view.pace(self.requests);
        if self.view.is_coming(self.requests, dir) {
            return true;
        }
        if !self.view.prefetch.walks.is_entered(dir, pace)
            || self.view.prefetch.walks.seen(dir, pace).is_streamed
        {
            return false;
        }
        self.stream(dir, None);
        true
    }

    /// Requests all listings below `dir`. If that was done before and did not include `missed`, requests `missed` and
    /// the next directories.
    fn stream(&mut self, dir: TreeNodeId, missed: Option<TreeNodeId>) {
        let bounds = |bytes| FindBounds { depth: u16::MAX, entries: SUBTREE_ENTRIES_MAX, bytes, inline: 0 };
        let pace = self.view.pace(self.requests);
        let seen = self.view.prefetch.walks.seen(dir, pace);
        if !seen.is_streamed {
            seen.is_streamed = true;
            asking::figures(self);
            asking::stream(self, dir, bounds(SUBTREE_BYTES_MAX));
            return;
        }
        seen.ahead = (seen.ahead * 2).clamp(AHEAD.0, AHEAD.1);
        let count = seen.ahead;
        let Some(missed) = missed else { return };
        let names = self.view.names.links(missed);
        let Some((_, name)) = names.iter().find(|(of, _)| *of == dir) else { return };
        for next in self.view.names.directories_after(dir, name, count) {
            if !self.view.is_listed(next) && !self.view.is_coming(self.requests, next) {
                asking::stream(self, next, bounds(AHEAD_BYTES_MAX));
            }
        }
    }

    /// Notes that a stream from `dir` has ended.
    pub(crate) fn stream_ended(&mut self, dir: TreeNodeId, told: FindTotals) {
        if told.directories > 1 && told.believed == 0 {
            self.view.prefetch.rests_until = self.view.mount.now + REST;
        }
        self.top_ended(dir, told);
    }
}
