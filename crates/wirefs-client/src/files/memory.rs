//! The contents that are remembered, within their limit.

use crate::files::Files;
use bytes::Bytes;
use std::collections::VecDeque;
use wirefs_cache::{NodeId, Ranges};

/// Notes of contents that are remembered, at most: those of what was overwritten or forgotten since are dropped then.
const NOTES_MAX: usize = 65_536;

/// How much is remembered, and in which order it is to be forgotten.
#[derive(Debug)]
pub(super) struct Remembered {
    /// What was remembered, oldest first: node, start, end.
    notes: VecDeque<(NodeId, u64, u64)>,
    bytes: usize,
    bytes_max: usize,
}

impl Remembered {
    pub(super) fn new(bytes_max: usize) -> Remembered {
        Remembered { notes: VecDeque::new(), bytes: 0, bytes_max }
    }
}

impl Files {
    pub(crate) fn cached_bytes(&self) -> usize {
        self.remembered.bytes
    }

    /// How many bytes may be read ahead without pushing each other out.
    pub(crate) fn read_ahead_bytes_max(&self) -> u64 {
        self.remembered.bytes_max as u64 / 2
    }

    /// Forgets all contents of a file.
    pub(crate) fn forget_contents(&mut self, node: NodeId) {
        if let Some(contents) = self.contents.get_mut(&node) {
            self.remembered.bytes -= contents.ranges.bytes();
            contents.ranges.clear();
            contents.epoch += 1;
        }
    }

    /// Forgets contents from `size` on.
    pub(crate) fn truncate_contents(&mut self, node: NodeId, size: u64) {
        self.change_ranges(node, |ranges| ranges.truncate(size));
        self.contents(node).epoch += 1;
    }

    /// Remembers bytes just written.
    pub(crate) fn remember_written(&mut self, node: NodeId, offset: u64, data: Bytes) {
        let end = offset + data.len() as u64;
        self.change_ranges(node, |ranges| ranges.insert(offset, data));
        self.remembered.notes.push_back((node, offset, end));
        self.shrink();
    }

    /// Remembers bytes just read, where nothing newer is known.
    pub(crate) fn remember_read(&mut self, node: NodeId, offset: u64, data: &Bytes) {
        self.change_ranges(node, |ranges| ranges.insert_missing(offset, data));
        self.remembered.notes.push_back((node, offset, offset + data.len() as u64));
        self.shrink();
    }

    fn change_ranges(&mut self, node: NodeId, change: impl FnOnce(&mut Ranges)) {
        let contents = self.contents.entry(node).or_default();
        let before = contents.ranges.bytes();
        change(&mut contents.ranges);
        self.remembered.bytes = self.remembered.bytes - before + contents.ranges.bytes();
    }

    fn shrink(&mut self) {
        while self.remembered.bytes > self.remembered.bytes_max {
            let Some((node, start, end)) = self.remembered.notes.pop_front() else {
                return;
            };
            if self.contents.contains_key(&node) {
                self.change_ranges(node, |ranges| ranges.remove(start, end));
            }
        }
        // Notes of what was overwritten or forgotten since are dropped before they outgrow what they stand for.
        if self.remembered.notes.len() > NOTES_MAX {
            let contents = &self.contents;
            self.remembered.notes.retain(|(node, start, _)| {
                contents.get(node).is_some_and(|contents| contents.ranges.known_to(*start) > *start)
            });
        }
    }
}
