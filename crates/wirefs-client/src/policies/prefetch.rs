//! Prefetching: the listings of a subtree for a program that walks it, and the contents of small files for a program that reads
//! them one after the other (`docs/design/0009-prefetch.md`).
//!
//! ```text
//!   the mount is made                   nothing is known yet
//!                                  ->   a stream of the listings at the top of the tree
//!   a directory is asked for            another one in the same directory was, or that was just listed
//!        | unknown here            ->   a stream of all listings below the parent
//!        | unknown after a stream  ->   streams of the next directories, twice as many each time
//!   a small file is opened              another one in the same directory was, or that is being walked
//!        | contents unknown        ->   contents of the directory's small files, and of the next directories'
//! ```
//!
//! *Holds*: what is asked for and not used yet is bounded; what comes is believed as any other reply is, and no more.

mod contents;
mod nearby;
mod top;

use crate::core::Client;
use crate::operation::{find, statfs};
use crate::pending::{FindBounds, FindTotals, Pending};
use crate::requests::Requests;
use crate::view::View;
use crate::view::prefetch::{Item, Pace};
use std::time::Duration;
use wirefs_cache::{ROOT, TreeNodeId};

/// After a useless stream, no stream begins for this long.
const REST: Duration = Duration::from_secs(10);

/// A stream of all below one directory has so many bytes at most: about 25,000 entries.
const SUBTREE_BYTES_MAX: u32 = 1024 * 1024;

/// And so many entries.
const SUBTREE_ENTRIES_MAX: u32 = 64 * 1024;

/// Where a stream did not reach, so many directories are asked for ahead at first, and at most.
const AHEAD: (usize, usize) = (8, 64);

/// Each with so many bytes.
const AHEAD_BYTES_MAX: u32 = 64 * 1024;

/// Things dropped in one step, at most.
const DROPPED_AT_ONCE: usize = 256;

impl View {
    fn pace(&self, requests: &Requests) -> Pace {
        Pace { now: self.mount.now, rtt: requests.incoming.rtt().unwrap_or_default() }
    }

    /// Whether what is asked for now may be expected to be believed for any time at all. Leases count once something was answered.
    pub(crate) fn may_fetch_ahead(&self, requests: &Requests) -> bool {
        self.coherency().allows_caching() || (self.leases.are_agreed() && requests.link.is_up())
    }

    /// Whether anything is to be asked for ahead.
    fn may_stream(&self, requests: &Requests) -> bool {
        self.mount.config.mode.fetch.prefetches()
            && !self.prefetch.is_refused
            && self.mount.now >= self.prefetch.rests_until
            && requests.link.is_up()
            && self.may_fetch_ahead(requests)
    }

    /// A directory's listing is known now.
    pub(crate) fn directory_listed(&mut self, requests: &Requests, dir: TreeNodeId) {
        let pace = self.pace(requests);
        self.prefetch.walks.listed(dir, pace);
    }

    /// A program lists a directory.
    pub(crate) fn directory_opened(&mut self, requests: &Requests, dir: TreeNodeId) {
        if self.mount.config.mode.fetch.is_cached() {
            let pace = self.pace(requests);
            self.prefetch.walks.opened(dir, pace);
            self.note_order(requests, dir);
        }
    }

    /// Where a walk that has come to a directory began: in that one, or in one above, down from which a program has just listed each
    /// directory. A directory is streamed only once.
    fn walk_top(&mut self, requests: &Requests, dir: TreeNodeId) -> TreeNodeId {
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
    fn is_coming(&self, requests: &Requests, dir: TreeNodeId) -> bool {
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

    /// Notes useless prefetched contents.
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

    /// Drops what was fetched ahead and is too much, or too old.
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

impl Client {
    /// A directory of which nothing is known is asked for: to be listed, or for a name in it.
    pub(crate) fn directory_missed(&mut self, dir: TreeNodeId) {
        if dir == ROOT || !self.view.may_stream(&self.requests) || self.view.is_coming(&self.requests, dir) {
            return;
        }
        let (pace, parent) = (self.view.pace(&self.requests), self.view.names.parent(dir));
        if self.view.prefetch.walks.enters(parent, dir, pace) {
            let top = self.view.walk_top(&self.requests, parent);
            self.stream(top, Some(dir));
        }
    }

    /// A name was found to be a directory in one that was not listed.
    pub(crate) fn directory_found(&mut self, parent: TreeNodeId, dir: TreeNodeId) {
        if self.view.may_stream(&self.requests) && !self.view.is_coming(&self.requests, dir) {
            let pace = self.view.pace(&self.requests);
            if self.view.prefetch.walks.enters(parent, dir, pace) {
                self.stream(parent, None);
            }
        }
    }

    /// Several names of a directory were asked for singly. Whether its listing comes along with those below it: some of the names
    /// were directories.
    pub(crate) fn streams_instead(&mut self, dir: TreeNodeId) -> bool {
        if !self.view.may_stream(&self.requests) {
            return false;
        }
        let pace = self.view.pace(&self.requests);
        if self.view.is_coming(&self.requests, dir) {
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

    /// Asks for all below `dir`; if that was done already and did not reach `missed`, for that one and the next.
    fn stream(&mut self, dir: TreeNodeId, missed: Option<TreeNodeId>) {
        let pace = self.view.pace(&self.requests);
        let seen = self.view.prefetch.walks.seen(dir, pace);
        if !seen.is_streamed {
            seen.is_streamed = true;
            statfs::ask_ahead(self);
            let bounds = FindBounds {
                depth: u16::MAX,
                entries: SUBTREE_ENTRIES_MAX,
                bytes: SUBTREE_BYTES_MAX,
                inline: 0,
            };
            find::ask(self, dir, bounds);
            return;
        }
        seen.ahead = (seen.ahead * 2).clamp(AHEAD.0, AHEAD.1);
        let count = seen.ahead;
        let Some(missed) = missed else { return };
        let names = self.view.names.links(missed);
        let Some((_, name)) = names.iter().find(|(of, _)| *of == dir) else { return };
        for next in self.view.names.directories_after(dir, name, count) {
            if !self.view.is_listed(next) && !self.view.is_coming(&self.requests, next) {
                let bounds = FindBounds {
                    depth: u16::MAX,
                    entries: SUBTREE_ENTRIES_MAX,
                    bytes: AHEAD_BYTES_MAX,
                    inline: 0,
                };
                find::ask(self, next, bounds);
            }
        }
    }

    /// A stream from `dir` has ended.
    pub(crate) fn stream_ended(&mut self, dir: TreeNodeId, told: FindTotals) {
        if told.directories > 1 && told.believed == 0 {
            self.view.prefetch.rests_until = self.view.mount.now + REST;
        }
        self.top_ended(dir, told);
    }
}
