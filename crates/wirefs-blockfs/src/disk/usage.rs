//! The live data of each segment, and the space that cleaning would free.

use std::collections::BTreeMap;

/// Bytes in one segment.
#[derive(Clone, Copy, Debug, Default)]
struct SegmentUsage {
    /// The total size.
    end: u64,
    /// The records of live blocks.
    live: u64,
    /// Free records: cleaning copies them, except from the oldest segment.
    free_records: u64,
}

/// The usage of all segments, updated with each record.
#[derive(Debug)]
pub(super) struct Usage {
    segments: BTreeMap<u64, SegmentUsage>,
    /// A segment with at most this much dead data is not worth copying. In bytes.
    slack: u64,
    used: u64,
    live: u64,
    free_records: u64,
    gain: u64,
}

impl Usage {
    pub(super) fn new(slack: u64) -> Usage {
        Usage { segments: BTreeMap::new(), slack, used: 0, live: 0, free_records: 0, gain: 0 }
    }

    /// The size of all segments, in bytes.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// The size of the records of live blocks, in bytes.
    pub(super) fn live(&self) -> u64 {
        self.live
    }

    /// The space that cleaning would free, in bytes; only segments that are worth it.
    pub(super) fn gain(&self) -> u64 {
        self.gain
    }

    /// Records that a segment has grown.
    pub(super) fn grow(&mut self, segment: u64, bytes: u64) {
        self.update(segment, |used| used.end += bytes);
    }

    /// Records that a block was added to a segment.
    pub(super) fn add(&mut self, segment: u64, bytes: u64) {
        self.update(segment, |used| used.live += bytes);
    }

    /// Records that a free record was added to a segment.
    pub(super) fn add_free_record(&mut self, segment: u64, bytes: u64) {
        self.update(segment, |used| used.free_records += bytes);
    }

    /// Returns whether free records use so much space that cleaning the oldest segments is worth it.
    pub(super) fn has_many_free_records(&self) -> bool {
        self.free_records > self.slack.max(self.used / 16)
    }

    /// Records that a block of a segment was freed or moved.
    pub(super) fn release(&mut self, segment: u64, bytes: u64) {
        self.update(segment, |used| used.live = used.live.saturating_sub(bytes));
    }

    /// Records that a segment was removed.
    pub(super) fn remove(&mut self, segment: u64) {
        self.update(segment, |used| *used = SegmentUsage::default());
        self.segments.remove(&segment);
    }

    /// Returns the segment before `last` with the most dead data; `None` if none is worth cleaning.
    pub(super) fn best(&self, last: u64) -> Option<u64> {
        let closed = self.segments.range(..last).map(|(number, used)| (self.gain_of(*used), *number));
        closed.max().filter(|(gain, _)| *gain > 0).map(|(_, number)| number)
    }

    fn gain_of(&self, used: SegmentUsage) -> u64 {
        let gone = used.end.saturating_sub(used.live + used.free_records);
        if gone > self.slack { gone } else { 0 }
    }

    fn update(&mut self, segment: u64, change: impl FnOnce(&mut SegmentUsage)) {
        let entry = self.segments.entry(segment).or_default();
        let before = *entry;
        change(entry);
        let after = *entry;
        self.used = self.used + after.end - before.end;
        self.live = self.live + after.live - before.live;
        self.free_records = self.free_records + after.free_records - before.free_records;
        self.gain = self.gain + self.gain_of(after) - self.gain_of(before);
    }
}
