//! Prefetching: the listings of a subtree for a program that walks it, and the contents of small files for a program that reads
//! them one after the other (`docs/design/0009-prefetch.md`).
//!
//! ```text
//!   event                          cached here            prefetched
//!   the mount begins               nothing                the listings at the top of the tree
//!   a second directory of a        not its listing        all listings below the parent, in one stream
//!     parent is used, or the       not, after a stream    the next directories, twice as many each time
//!     first of a listed parent
//!   a second small file of a       not its contents       the small files of this directory and the next ones
//!     directory is opened, or
//!     the first during a walk
//! ```
//!
//! *Holds*: the amount of unused prefetched data is bounded. Prefetched data is valid for as long as any other reply.

pub(crate) mod contents;

use crate::pending::Pending;
use crate::requests::Requests;
use crate::view::View;
use crate::view::prefetch::{Item, Pace};
use wirefs_cache::{ROOT, TreeNodeId};

/// Things dropped in one step, at most.
const DROPPED_AT_ONCE: usize = 256;

impl View {
    pub(crate) fn pace(&self, requests: &Requests) -> Pace {
        Pace { now: self.mount.now, rtt: requests.incoming.rtt().unwrap_or_default() }
    }

    /// Whether data that is requested now will be valid for any time. Leases are valid only after a reply, so their
    /// agreement suffices.
    pub(crate) fn may_fetch_ahead(&self, requests: &Requests) -> bool {
        self.coherency().allows_caching() || (self.leases.are_agreed() && requests.link.is_up())
    }

    /// Whether anything may be prefetched.
    pub(crate) fn may_stream(&self, requests: &Requests) -> bool {
        self.mount.config.mode.fetch.prefetches()
            && !self.prefetch.is_refused
            && self.mount.now >= self.prefetch.rests_until
            && requests.link.is_up()
            && self.may_fetch_ahead(requests)
    }

    /// Notes that a directory's listing was received.
    pub(crate) fn directory_listed(&mut self, requests: &Requests, dir: TreeNodeId) {
        let pace = self.pace(requests);
        self.prefetch.walks.listed(dir, pace);
    }

    /// Notes that a program lists a directory.
    pub(crate) fn directory_opened(&mut self, requests: &Requests, dir: TreeNodeId) {
        if self.mount.config.mode.fetch.is_cached() {
            let pace = self.pace(requests);
            self.prefetch.walks.opened(dir, pace);
            self.note_order(requests, dir);
        }
    }

    /// Where a walk that has come to a directory began: in that one, or in one above, down from which a program has just listed each
    /// directory. A directory is streamed only once.
    pub(crate) fn walk_top(&mut self, requests: &Requests, dir: TreeNodeId) -> TreeNodeId {
        let pace = self.pace(requests);
        let (mut top, mut at) = (dir, dir);
        while at != ROOT && self.prefetch.walks.is_walked_now(at, pace) {
            at = self.names.parent(at);
            if !self.prefetch.walks.is_walked_now(at, pace) {
                break;
            }
            if !self.prefetch.walks.seen(at, pace).is_streamed {
                top = at;
            }
        }
        top
    }

    /// Whether a stream in progress will list a directory.
    pub(crate) fn is_coming(&self, requests: &Requests, dir: TreeNodeId) -> bool {
        let (mut at, mut levels) = (dir, 0);
        loop {
            if requests.any(|pending| matches!(pending, Pending::Find(stream) if stream.covers(at, levels))) {
                return true;
            }
            let above = self.names.parent(at);
            if at == ROOT || above == at {
                return false;
            }
            (at, levels) = (above, levels.saturating_add(1));
        }
    }

    /// Notes a prefetched listing. `is_known`: it was known already.
    pub(crate) fn fetched_directory(&mut self, dir: TreeNodeId, is_known: bool) {
        let fate = &mut self.prefetch.counted.directories;
        fate.fetched += 1;
        if is_known || !self.prefetch.unused.add(dir, Item::Directory, self.mount.now) {
            fate.wasted += 1;
            return;
        }
        self.names.hold(dir);
    }

    /// Notes prefetched contents.
    pub(crate) fn fetched_file(&mut self, node: TreeNodeId, bytes: u64, is_known: bool) {
        let counted = &mut self.prefetch.counted;
        counted.files.fetched += 1;
        counted.contents.fetched += bytes;
        if is_known || !self.prefetch.unused.add(node, Item::File(bytes), self.mount.now) {
            counted.files.wasted += 1;
            counted.contents.wasted += bytes;
            return;
        }
        self.names.hold(node);
    }

    /// Notes prefetched contents that were of no use.
    pub(crate) fn fetched_known(&mut self, bytes: u64) {
        let counted = &mut self.prefetch.counted;
        counted.files.fetched += 1;
        counted.files.wasted += 1;
        counted.contents.fetched += bytes;
        counted.contents.wasted += bytes;
    }

    /// Notes the first use of a node's prefetched data. Returns whether there was any.
    pub(crate) fn used_ahead(&mut self, requests: &Requests, node: TreeNodeId) -> bool {
        let Some(item) = self.prefetch.unused.remove(node) else { return false };
        let counted = &mut self.prefetch.counted;
        match item {
            Item::Directory => {
                counted.directories.used += 1;
                // For the walk that uses the listing, it arrives now.
                self.directory_listed(requests, node);
            }
            Item::File(bytes) => {
                counted.files.used += 1;
                counted.contents.used += bytes;
                self.prefetch.contents.used(bytes);
            }
        }
        self.names.release(node);
        true
    }

    /// Drops unused prefetched data that exceeds the bounds, or is too old.
    pub(crate) fn drop_unused(&mut self) {
        let (bytes_max, most) = (self.ahead_bytes_max(), self.unused_max());
        for _ in 0..DROPPED_AT_ONCE {
            let (coherency, names) = (self.coherency(), &self.names);
            let (directories, inactive, files) = (&self.directories, &self.inactive, &self.files);
            let is_packed =
                |node| names.node(node).is_some_and(|dir| inactive.has_whole(dir.stat.id, &coherency));
            let is_useless = |node: TreeNodeId, item: Item| match item {
                Item::Directory => !directories.is_fresh(node, &coherency) && !is_packed(node),
                Item::File(bytes) => {
                    let is_known = |node| names.node(node).is_some_and(|known| known.is_fresh(&coherency));
                    let contents = files.known(node).map_or(0, |known| known.ranges.bytes() as u64);
                    contents < bytes || !is_known(node)
                }
            };
            let dropped = self.prefetch.unused.drop_oldest(bytes_max, most, is_useless);
            let Some((node, item)) = dropped else { return };
            let counted = &mut self.prefetch.counted;
            match item {
                Item::Directory => counted.directories.wasted += 1,
                Item::File(bytes) => {
                    counted.files.wasted += 1;
                    counted.contents.wasted += bytes;
                    self.prefetch.contents.wasted(bytes);
                    self.files.forget_ahead(node);
                }
            }
            self.names.release(node);
            self.drop_if_gone(node);
        }
    }

    /// How many bytes of contents may be known ahead and unused.
    fn ahead_bytes_max(&self) -> u64 {
        self.files.read_ahead_bytes_max() / 2
    }
}
