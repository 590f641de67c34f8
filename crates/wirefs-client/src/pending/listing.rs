//! Continuations of requests for listings: of one directory, and of a subtree.

use super::continuation::Continuation;
use crate::call::{CallId, Handle};
use crate::view::files::{OpenDirectory, WaitingReaddir};
use std::collections::{BTreeMap, BTreeSet};
use wirefs_cache::{Freshness, TreeNodeId};
use wirefs_op::{DirEntry, Stat, Time, TreePath};

/// A call that waits for the beginning of a listing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ListingReader {
    /// An opendir.
    Opendir(CallId),
    /// A stateless readdir.
    Readdir(WaitingReaddir),
}

impl ListingReader {
    pub(crate) fn call(self) -> CallId {
        match self {
            ListingReader::Opendir(call) => call,
            ListingReader::Readdir(wanted) => wanted.call,
        }
    }
}

/// The listing of one directory.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    pub(crate) node: TreeNodeId,
    /// The open directory that reads it; `None`: fetched for the sake of lookups.
    pub(crate) handle: Option<Handle>,
    /// The call that waits for the beginning, and since when.
    pub(crate) opening: Option<(ListingReader, Time)>,
    /// Whether the directory is leased, according to the first reply.
    pub(crate) is_leased: bool,
    pub(crate) received: Vec<DirEntry>,
    /// Whether it was requested to its end.
    pub(crate) is_whole: bool,
    /// Whether it begins again after a lost connection.
    pub(crate) is_again: bool,
    /// The names that arrived over the lost connection.
    pub(crate) came: BTreeSet<Vec<u8>>,
}

impl Listing {
    pub(crate) fn of(node: TreeNodeId) -> Listing {
        Listing {
            node,
            handle: None,
            opening: None,
            is_leased: false,
            received: Vec::new(),
            is_whole: true,
            is_again: false,
            came: BTreeSet::new(),
        }
    }

    /// Appends entries, as fresh as `listed`, to the open directory.
    pub(crate) fn fill(
        &mut self,
        open: &mut OpenDirectory,
        new: &mut Vec<DirEntry>,
        listed: Freshness,
        sent: Time,
    ) {
        if std::mem::take(&mut self.is_again) {
            self.came = open.names();
        }
        if self.came.is_empty() {
            (open.listed, open.taken_at) = (listed, sent);
        } else {
            // The earlier entries keep their age and lose their lease. Readers continue behind them.
            open.listed.leased = false;
            new.retain(|entry| !self.came.contains(&entry.name));
        }
        open.entries.append(new);
    }
}

impl Continuation for Listing {
    fn restart(&mut self) -> bool {
        self.received.clear();
        self.is_again = true;
        self.handle.is_some() || self.opening.is_some()
    }
}

/// The bounds of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FindBounds {
    /// Levels below the top directory.
    pub(crate) depth: u16,
    /// Entries in all.
    pub(crate) entries: u32,
    /// Bytes in all.
    pub(crate) bytes: u32,
    /// Files of at most this many bytes come with their contents.
    pub(crate) inline: u32,
}

/// The amounts that a stream has brought.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FindTotals {
    pub(crate) entries: u32,
    pub(crate) bytes: u32,
    /// Directories with all of their entries, and those of them whose listing may be used.
    pub(crate) directories: usize,
    pub(crate) believed: usize,
    /// Whether it ended without reaching a bound, and without an error.
    pub(crate) is_whole: bool,
}

/// The listings of a subtree; no call waits.
#[derive(Clone, Debug)]
pub(crate) struct FindStream {
    /// The directory where it begins; held.
    pub(crate) top: TreeNodeId,
    pub(crate) bounds: FindBounds,
    /// The directory whose entries arrive now.
    pub(crate) current: Option<ArrivingListing>,
    pub(crate) totals: FindTotals,
}

impl FindStream {
    /// Whether this stream, below `dir`, will list directories this many levels below it, as far as it goes.
    pub(crate) fn covers(&self, dir: TreeNodeId, levels: u16) -> bool {
        self.top == dir && self.bounds.depth > 0 && levels <= self.bounds.depth
    }
}

impl Continuation for FindStream {
    fn restart(&mut self) -> bool {
        false
    }
}

/// A partial listing in a stream.
#[derive(Clone, Debug)]
pub(crate) struct ArrivingListing {
    pub(crate) path: TreePath,
    /// Held; `None`: not to be cached.
    pub(crate) node: Option<TreeNodeId>,
    pub(crate) stat: Stat,
    /// Whether it arrived from its beginning on.
    pub(crate) is_whole: bool,
    pub(crate) ends: bool,
    pub(crate) entries: Vec<DirEntry>,
    /// Contents that came with the entries, by index.
    pub(crate) contents: BTreeMap<usize, bytes::Bytes>,
}
