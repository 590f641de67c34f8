//! The changes in flight over one connection.

use crate::entry::Record;
use crate::limits::{IN_FLIGHT_BYTES_MAX, IN_FLIGHT_MAX};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wirefs_op::Tag;

/// Changes in flight, by tag and by number.
#[derive(Debug)]
pub(super) struct Window {
    free: VecDeque<Tag>,
    records: BTreeMap<Tag, Record>,
    numbers: BTreeSet<u64>,
    bytes: usize,
}

impl Window {
    /// Returns an empty window with all tags below `end`.
    pub(super) fn new(end: Tag) -> Window {
        let free = (0..end.0).map(Tag).collect();
        Window { free, records: BTreeMap::new(), numbers: BTreeSet::new(), bytes: 0 }
    }

    /// Returns whether another change may be sent.
    pub(super) fn has_room(&self) -> bool {
        !self.free.is_empty() && self.bytes < IN_FLIGHT_BYTES_MAX && !self.is_far_ahead()
    }

    /// Bounds the distance from the oldest change in flight to the newest.
    fn is_far_ahead(&self) -> bool {
        let (Some(first), Some(last)) = (self.numbers.first(), self.numbers.last()) else { return false };
        last - first >= IN_FLIGHT_MAX as u64
    }

    /// Returns the number of changes.
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns the lowest number in flight.
    pub(super) fn first(&self) -> Option<u64> {
        self.numbers.first().copied()
    }

    /// Returns the number of the change with this tag.
    pub(super) fn number_of(&self, tag: Tag) -> Option<u64> {
        self.records.get(&tag).map(|record| record.number)
    }

    /// Takes a free tag.
    pub(super) fn take_tag(&mut self) -> Option<Tag> {
        self.free.pop_front()
    }

    /// Adds a change under a tag that was taken.
    pub(super) fn insert(&mut self, tag: Tag, record: Record) {
        self.bytes += record.body.len();
        self.numbers.insert(record.number);
        self.records.insert(tag, record);
    }

    /// Removes the change with this tag, which is free again.
    pub(super) fn remove(&mut self, tag: Tag) -> Option<Record> {
        let record = self.records.remove(&tag)?;
        self.numbers.remove(&record.number);
        self.bytes -= record.body.len();
        self.free.push_back(tag);
        Some(record)
    }
}
