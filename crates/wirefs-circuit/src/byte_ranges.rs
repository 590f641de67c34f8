//! Sets of byte offsets as disjoint ranges.

use std::collections::BTreeMap;

/// Disjoint, non-adjacent ranges `start..end`.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByteRanges(BTreeMap<u64, u64>);

impl ByteRanges {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn first(&self) -> Option<(u64, u64)> {
        self.0.first_key_value().map(|(start, end)| (*start, *end))
    }

    pub(crate) fn take_first(&mut self) -> Option<(u64, u64)> {
        self.0.pop_first()
    }

    /// Adds a range and merges it with adjacent ones.
    pub(crate) fn insert(&mut self, mut start: u64, mut end: u64) {
        if start >= end {
            return;
        }
        while let Some((&low, &high)) = self.0.range(..=end).next_back().filter(|(_, high)| **high >= start) {
            start = start.min(low);
            end = end.max(high);
            self.0.remove(&low);
        }
        self.0.insert(start, end);
    }

    /// Removes a range.
    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        if start >= end || self.is_empty() {
            return;
        }
        while let Some((&low, &high)) = self.0.range(..end).next_back().filter(|(_, high)| **high > start) {
            self.0.remove(&low);
            if high > end {
                self.0.insert(end, high);
            }
            if low < start {
                self.0.insert(low, start);
            }
        }
    }

    /// Returns the intersections with `start..end`.
    pub(crate) fn overlaps(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        if start >= end {
            return Vec::new();
        }
        let before = self.0.range(..start).next_back().map(|(low, high)| (*low, *high));
        let within = self.0.range(start..end).map(|(low, high)| (*low, *high));
        before
            .into_iter()
            .chain(within)
            .map(|(low, high)| (low.max(start), high.min(end)))
            .filter(|(low, high)| low < high)
            .collect()
    }
}

#[cfg(test)]
mod tests;
