//! Prefetches the top of the tree with the mount, before any program asks: the names that a shell, `git status` or a
//! walk reads first, and all of a small tree. Streams follow one another, level by level, within a budget.

use super::asking;
use crate::pending::{FindBounds, FindTotals};
use crate::sending::Sender;
use crate::view::View;
use crate::view::prefetch::top::Top;
use std::collections::VecDeque;
use wirefs_cache::{ROOT, TreeNodeId};
use wirefs_op::Kind;

/// The maximum number of bytes to prefetch with a mount: a fifth of a second of 10 Mbit/s.
const BYTES_MAX: u32 = 256 * 1024;

/// The maximum number of entries to prefetch. One takes about 40 bytes on the wire, and 300 in memory.
const ENTRIES_MAX: u32 = 8192;

/// The levels below the root that the first stream lists. A deeper stream might spend its whole budget on the first
/// directory by name, for example `.git/objects`.
const DEPTH: u16 = 2;

/// The maximum number of streams after the first one.
const STREAMS_MAX: u8 = 16;

/// The smallest remaining budget that is worth a request, in bytes.
const BYTES_MIN: u32 = 4096;

impl View {
    /// Returns the first directory, level by level, that contains a directory without a known listing.
    fn untold(&mut self) -> Option<TreeNodeId> {
        let coherency = self.coherency();
        let mut line = VecDeque::from([ROOT]);
        while let Some(dir) = line.pop_front() {
            let Some((listing, _)) = self.directories.snapshot(dir, &coherency) else { continue };
            for entry in listing.iter().filter(|entry| entry.stat.kind == Kind::Directory) {
                let node = self.names.of_file(entry.stat.id);
                match node.filter(|node| self.is_listed(*node)) {
                    Some(node) => line.push_back(node),
                    None => return Some(dir),
                }
            }
        }
        None
    }
}

impl Sender<'_> {
    /// Requests the top of the tree if nothing is known of it.
    ///
    /// # Cost
    /// At most 17 requests, one after the other, and 256 KiB.
    pub(crate) fn ask_top(&mut self) {
        if self.view.may_stream(self.requests)
            && !self.view.prefetch.has_memory
            && !self.view.directories.is_fresh(ROOT, &self.view.coherency())
        {
            asking::figures(self);
            let bounds = FindBounds { depth: DEPTH, entries: ENTRIES_MAX, bytes: BYTES_MAX, inline: 0 };
            if asking::stream(self, ROOT, bounds) {
                let top = Top { bytes: BYTES_MAX, entries: ENTRIES_MAX, streams: STREAMS_MAX, at: ROOT };
                self.view.prefetch.top = Some(top);
            }
        }
    }

    /// Notes the end of a stream from `dir` with these totals. If it was a stream of the top, and complete, the next
    /// one begins.
    pub(super) fn top_ended(&mut self, dir: TreeNodeId, told: FindTotals) {
        let Some(mut top) = self.view.prefetch.top.take_if(|top| top.at == dir) else { return };
        top.bytes = top.bytes.saturating_sub(told.bytes);
        top.entries = top.entries.saturating_sub(told.entries);
        if !told.is_whole || top.bytes < BYTES_MIN || top.entries == 0 || top.streams == 0 {
            return;
        }
        if !self.view.may_stream(self.requests) {
            return;
        }
        let Some(next) = self.view.untold().filter(|next| *next != dir) else { return };
        let bounds = FindBounds { depth: u16::MAX, entries: top.entries, bytes: top.bytes, inline: 0 };
        if !self.view.is_coming(self.requests, next) && asking::stream(self, next, bounds) {
            (top.streams, top.at) = (top.streams - 1, next);
            self.view.prefetch.top = Some(top);
        }
    }
}
