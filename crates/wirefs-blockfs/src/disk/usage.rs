//! How full each segment is, and what cleaning would give.

use std::collections::BTreeMap;

/// Bytes of one segment.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    /// All of it.
    end: u64,
    /// Records of blocks that are still there.
    live: u64,
    /// Records that let go of blocks: they go along when a segment is cleaned that is not the oldest.
    freeing: u64,
}

/// What all segments hold, kept up to date with each record.
#[derive(Debug)]
pub(super) struct Usage {
    segments: BTreeMap<u64, Used>,
    /// A segment with no more than this to be let go of is not worth copying.
    slack: u64,
    used: u64,
    live: u64,
    freeing: u64,
    gain: u64,
}

impl Usage {
    pub(super) fn new(slack: u64) -> Usage {
        Usage { segments: BTreeMap::new(), slack, used: 0, live: 0, freeing: 0, gain: 0 }
    }

    /// Bytes of all segments.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Bytes of records of blocks that are still there.
    pub(super) fn live(&self) -> u64 {
        self.live
    }

    /// Bytes that cleaning would give, segments left out that are not worth it.
    pub(super) fn gain(&self) -> u64 {
        self.gain
    }

    /// A segment has become so much longer.
    pub(super) fn grow(&mut self, segment: u64, bytes: u64) {
        self.update(segment, |used| used.end += bytes);
    }

    /// A block has come into a segment.
    pub(super) fn add(&mut self, segment: u64, bytes: u64) {
        self.update(segment, |used| used.live += bytes);
    }

    /// A record has come into a segment that lets go of blocks.
    pub(super) fn add_freeing(&mut self, segment: u64, bytes: u64) {
        self.update(segment, |used| used.freeing += bytes);
    }

    /// Whether records that let go of blocks take so much that the oldest segments are worth cleaning for those in them.
    pub(super) fn is_full_of_freeing(&self) -> bool {
        self.freeing > self.slack.max(self.used / 16)
    }

    /// A block of a segment was let go of, or is elsewhere now.
    pub(super) fn release(&mut self, segment: u64, bytes: u64) {
        self.update(segment, |used| used.live = used.live.saturating_sub(bytes));
    }

    /// A segment is gone.
    pub(super) fn remove(&mut self, segment: u64) {
        self.update(segment, |used| *used = Used::default());
        self.segments.remove(&segment);
    }

    /// The segment whose cleaning gives most, before `last`; none when no one is worth it.
    pub(super) fn best(&self, last: u64) -> Option<u64> {
        let closed = self.segments.range(..last).map(|(number, used)| (self.gain_of(*used), *number));
        closed.max().filter(|(gain, _)| *gain > 0).map(|(_, number)| number)
    }

    fn gain_of(&self, used: Used) -> u64 {
        let gone = used.end.saturating_sub(used.live + used.freeing);
        if gone > self.slack { gone } else { 0 }
    }

    fn update(&mut self, segment: u64, change: impl FnOnce(&mut Used)) {
        let entry = self.segments.entry(segment).or_default();
        let before = *entry;
        change(entry);
        let after = *entry;
        self.used = self.used + after.end - before.end;
        self.live = self.live + after.live - before.live;
        self.freeing = self.freeing + after.freeing - before.freeing;
        self.gain = self.gain + self.gain_of(after) - self.gain_of(before);
    }
}
