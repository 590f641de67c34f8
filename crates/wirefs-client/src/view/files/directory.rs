//! Open directories.

use crate::call::CallId;
use crate::view::files::stateless::outlines::digest;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wirefs_cache::long_listing::ENTRY_BYTES;
use wirefs_cache::{Freshness, LongListing, TreeNodeId};
use wirefs_op::{DirEntry, Errno, FileId, Stat, Time};

/// One open directory: its listing as of when it was opened, or as far as it is here.
#[derive(Debug)]
pub(crate) struct OpenDirectory {
    pub(crate) node: TreeNodeId,
    pub(crate) entries: LongListing,
    /// The sorted digests of names that an ended reading had before the first entry, which continues it.
    pub(crate) before: Vec<u64>,
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
        self.each_page(|page| names.extend(page.iter().map(|entry| entry.name.clone())));
        names
    }

    /// The digests of the names before the first entry, then of the names of the entries, in order.
    pub(crate) fn digests(&mut self) -> Vec<u64> {
        let mut digests = Vec::with_capacity(self.before.len() + self.entries.len());
        digests.extend_from_slice(&self.before);
        self.each_page(|page| digests.extend(page.iter().map(|entry| digest(&entry.name))));
        digests
    }

    /// Removes the entries whose names have these digests, which are sorted. `None`: a packed page is corrupt.
    ///
    /// # Cost
    /// Unpacks one page at a time.
    pub(crate) fn continue_after(&mut self, before: Vec<u64>) -> Option<()> {
        let mut rest = LongListing::default();
        let is_new = |entry: &&DirEntry| before.binary_search(&digest(&entry.name)).is_err();
        self.each_page(|page| rest.append(&mut page.iter().filter(is_new).cloned().collect()))?;
        (self.entries, self.before) = (rest, before);
        Some(())
    }

    /// Gives entries whose objects have these former ids the present attributes.
    pub(crate) fn made_again(&mut self, made: &BTreeMap<FileId, Stat>) {
        let present = |entry: &DirEntry| match made.get(&entry.stat.id) {
            Some(stat) => DirEntry { stat: *stat, ..entry.clone() },
            None => entry.clone(),
        };
        let mut entries = LongListing::default();
        let is_whole = self.each_page(|page| entries.append(&mut page.iter().map(present).collect()));
        // The reader of a corrupt page gets an error.
        if is_whole.is_some() {
            self.entries = entries;
        }
    }

    /// Takes the entries page by page, in order. `None`: a packed page is corrupt.
    fn each_page(&mut self, mut take: impl FnMut(&[DirEntry])) -> Option<()> {
        let mut at = 0;
        while at < self.entries.len() {
            let page = self.entries.page(at)?;
            take(&page.entries);
            at = page.first + page.entries.len();
        }
        Some(())
    }

    /// The bytes of the digests of names before the first entry.
    pub(crate) fn before_bytes(&self) -> usize {
        self.before.len() * size_of::<u64>()
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
        own += open.entries.bytes() + open.before_bytes();
        if let Some(listing) = open.entries.shared().filter(|listing| !counts(open.node, listing)) {
            shared.insert(Arc::as_ptr(listing), listing.len());
        }
    }
    own + shared.values().sum::<usize>() * ENTRY_BYTES
}
