//! Open directories.

use crate::call::CallId;
use crate::view::files::stateless::digest;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wirefs_cache::long_listing::ENTRY_BYTES;
use wirefs_cache::{Freshness, LongListing, TreeNodeId};
use wirefs_op::{DirEntry, Errno, Time};

/// One open directory: its listing as of when it was opened, or as far as it is here.
#[derive(Debug)]
pub(crate) struct OpenDirectory {
    pub(crate) node: TreeNodeId,
    pub(crate) entries: LongListing,
    /// As of when the listing is known.
    pub(crate) listed: Freshness,
    /// When the entries were taken: own changes since are not in them.
    pub(crate) taken_at: Time,
    /// Names that were recalled since, with the attributes of their objects.
    pub(crate) invalidated: BTreeSet<Vec<u8>>,
    /// The kernel keeps what it reads of it.
    pub(crate) is_kept: bool,
    pub(crate) complete: bool,
    pub(crate) error: Option<Errno>,
    /// Something was read from it already, so that offset 0 means that the reader starts again.
    pub(crate) read: bool,
    pub(crate) waiting: Vec<WaitingReaddir>,
}

impl OpenDirectory {
    /// The names of the entries that are here.
    pub(crate) fn names(&mut self) -> BTreeSet<Vec<u8>> {
        let mut names = BTreeSet::new();
        self.each_name(|name| {
            names.insert(name.to_vec());
        });
        names
    }

    /// The digests of these names, in order.
    pub(crate) fn digests(&mut self) -> Vec<u64> {
        let mut digests = Vec::with_capacity(self.entries.len());
        self.each_name(|name| digests.push(digest(name)));
        digests
    }

    fn each_name(&mut self, mut take: impl FnMut(&[u8])) {
        let mut at = 0;
        while at < self.entries.len() {
            let Some(page) = self.entries.page(at) else { break };
            page.entries.iter().skip(at - page.first).for_each(|entry| take(&entry.name));
            at = page.first + page.entries.len();
        }
    }
}

/// A readdir that waits for more of the listing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingReaddir {
    pub(crate) call: CallId,
    pub(crate) offset: u64,
    pub(crate) bytes_max: u32,
    pub(crate) entry_bytes: u32,
    pub(crate) with_stats: bool,
    /// The reading that it goes on with; `None`: it begins one, or the directory is open.
    pub(crate) number: Option<u64>,
    /// Which thread calls; 0 where that is not known.
    pub(crate) thread: u32,
}

/// The approximate bytes in these listings. A shared listing counts once, and not if it `counts` elsewhere.
pub(super) fn listing_bytes<'a>(
    listings: impl Iterator<Item = &'a OpenDirectory>,
    counts: impl Fn(TreeNodeId, &Arc<Vec<DirEntry>>) -> bool,
) -> usize {
    let mut shared = BTreeMap::new();
    let mut own = 0;
    for open in listings {
        own += open.entries.bytes();
        if let Some(listing) = open.entries.shared().filter(|listing| !counts(open.node, listing)) {
            shared.insert(Arc::as_ptr(listing), listing.len());
        }
    }
    own + shared.values().sum::<usize>() * ENTRY_BYTES
}
