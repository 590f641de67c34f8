//! The versions of a file to which its cached contents, and the kernel's pages, belong.

use crate::call::PageCache;
use crate::view::files::Files;
use std::time::Duration;
use wirefs_cache::{CachedRanges, Coherency, Freshness, ReadAhead, TreeNodeId};
use wirefs_op::Time;

/// How long a recalled file is assumed to be changing.
const MOVING_FOR: Duration = Duration::from_secs(5);

impl Files {
    /// Whether contents of this version belong to the known version of the file. Returns false while own changes are in
    /// progress.
    pub(crate) fn is_of(&self, node: TreeNodeId, version: u64) -> bool {
        self.contents
            .get(&node)
            .is_some_and(|contents| contents.writes == 0 && contents.version == Some(version))
    }

    /// Whether the file's version at `at`, or later, is known.
    pub(crate) fn is_known_since(&self, node: TreeNodeId, at: Time) -> bool {
        let valid = self.contents.get(&node).and_then(|contents| contents.valid);
        valid.is_some_and(|valid| valid.at >= at)
    }

    /// Takes in the version of the file at a time without own changes in progress. Returns whether another client has changed it.
    pub(crate) fn observe(
        &mut self,
        node: TreeNodeId,
        version: u64,
        known: Freshness,
        coherency: &Coherency,
    ) -> bool {
        let Some(contents) = self.contents.get_mut(&node) else {
            return false;
        };
        if contents.valid.is_some_and(|valid| known.at < valid.at) {
            return false;
        }
        let before = contents.version.replace(version);
        let changed = before.is_some_and(|before| before != version);
        contents.valid = Some(coherency.renewed(contents.valid, known, !changed));
        if changed {
            self.forget_contents(node);
        }
        changed
    }

    /// Takes in that an own change led from version `before` to `after`. Returns whether a change of another client came between.
    pub(crate) fn advance(
        &mut self,
        node: TreeNodeId,
        before: u64,
        after: u64,
        now_known: Freshness,
        coherency: &Coherency,
    ) -> bool {
        let contents = self.contents.entry(node).or_default();
        let known = contents.version.replace(after);
        let foreign = known.is_some_and(|known| known != before);
        if contents.valid.is_none_or(|valid| now_known.at >= valid.at) {
            contents.valid = Some(coherency.renewed(contents.valid, now_known, !foreign));
        } else if foreign {
            contents.valid = contents.valid.map(|valid| Freshness::since(valid.at));
        }
        // The kernel's pages have our own writes already.
        if contents.kernel_version.is_some() && contents.kernel_version == known && !foreign {
            contents.kernel_version = Some(after);
        }
        if foreign {
            self.forget_contents(node);
        }
        foreign
    }

    /// The kernel's treatment of its pages when the file is opened by a request sent at `sent`. It keeps pages of the version that
    /// the file had then, or may be assumed to have had: with own changes in progress, the version in the last reply.
    pub(crate) fn page_cache(
        &mut self,
        node: TreeNodeId,
        bypass: bool,
        sent: Time,
        coherency: &Coherency,
    ) -> PageCache {
        let contents = self.contents.entry(node).or_default();
        if bypass {
            return PageCache::Bypass;
        }
        let is_recent = |valid: Freshness| valid.at >= sent || coherency.is_valid_since(valid, sent);
        let is_recent = contents.valid.is_some_and(is_recent);
        let is_same = contents.kernel_version.is_some() && contents.kernel_version == contents.version;
        contents.kernel_version = contents.version;
        if is_recent && is_same { PageCache::Keep } else { PageCache::Drop }
    }

    /// Notes that the kernel is asked to drop the file's pages. It does so after the answers in transit: it locks pages
    /// that wait for an answer, and the invalidation waits for them.
    pub(crate) fn kernel_emptied(&mut self, node: TreeNodeId, now: Time) {
        if let Some(contents) = self.contents.get_mut(&node) {
            contents.kernel_is_empty = true;
            contents.kernel_emptied = Some(now);
        }
    }

    /// Whether the kernel should not cache the file: a local program appends to it, so the kernel does not know its
    /// end, or others have just changed it and may do so again. A read through pages stops at the end that the kernel
    /// assumes, and during an invalidation the kernel discards an answer with the right one.
    pub(crate) fn is_moving(&self, node: TreeNodeId, now: Time) -> bool {
        let emptied = self.contents.get(&node).and_then(|contents| contents.kernel_emptied);
        emptied.is_some_and(|at| now.since(at) < MOVING_FOR) || self.open.is_appended(node)
    }

    /// Notes that the kernel reads or writes the file.
    pub(crate) fn kernel_uses(&mut self, node: TreeNodeId) {
        if let Some(contents) = self.contents.get_mut(&node) {
            contents.kernel_is_empty = false;
        }
    }

    /// Whether the kernel may have pages of the file. To have it forget them again would do harm: it takes attributes that are on
    /// their way meanwhile for older ones and drops them (`fuse_change_attributes` in fs/fuse/inode.c), and a read that had asked
    /// for the size ends where the file ended before.
    pub(crate) fn may_kernel_have(&self, node: TreeNodeId) -> bool {
        self.contents.get(&node).is_none_or(|contents| !contents.kernel_is_empty)
    }

    /// Another object has taken the file's place, by an own change, and this is what it holds.
    pub(crate) fn replaced(
        &mut self,
        node: TreeNodeId,
        ranges: CachedRanges,
        version: u64,
        known: Freshness,
    ) {
        self.forget_contents(node);
        self.put_whole(node, ranges);
        let contents = self.contents(node);
        (contents.version, contents.valid, contents.kernel_version) = (Some(version), Some(known), None);
    }

    /// A lock on the file was granted, and others may have changed it: all that is read from now on is asked for, of the server alone.
    pub(crate) fn locked(&mut self, node: TreeNodeId) {
        self.invalidate_contents(node);
        self.contents(node).is_locked = true;
        for handle in self.handles_of(node).collect::<Vec<_>>() {
            if let Some(open) = self.open_mut(handle) {
                open.ahead = ReadAhead::after_invalidation();
            }
        }
    }

    /// Invalidates the cached contents of a file, and the kernel's pages.
    pub(crate) fn invalidate_contents(&mut self, node: TreeNodeId) {
        if let Some(contents) = self.contents.get_mut(&node) {
            contents.valid = None;
            contents.kernel_version = None;
        }
        self.forget_contents(node);
    }
}
