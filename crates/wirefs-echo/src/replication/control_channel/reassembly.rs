//! Reassembly of messages and blocks that arrive in several packets.

use std::collections::{BTreeMap, VecDeque};

/// Maximum number of parts of one item.
const PARTS_MAX: usize = 256;

#[derive(Debug)]
struct Partial {
    parts: BTreeMap<usize, Vec<u8>>,
    count: usize,
}

/// Items being reassembled; the oldest is evicted when there are too many.
#[derive(Debug)]
pub(super) struct Reassembly {
    max: usize,
    open: BTreeMap<u128, Partial>,
    order: VecDeque<u128>,
}

impl Reassembly {
    pub(super) fn new(max: usize) -> Reassembly {
        Reassembly { max, open: BTreeMap::new(), order: VecDeque::new() }
    }

    /// Adds a part. Returns the whole item with the last missing part.
    pub(super) fn add(&mut self, number: u128, part: usize, count: usize, bytes: &[u8]) -> Option<Vec<u8>> {
        if count == 1 {
            return Some(bytes.to_vec());
        }
        if part >= count || count > PARTS_MAX {
            return None;
        }
        if !self.open.contains_key(&number) {
            if self.order.len() >= self.max
                && let Some(oldest) = self.order.pop_front()
            {
                self.open.remove(&oldest);
            }
            self.open.insert(number, Partial { parts: BTreeMap::new(), count });
            self.order.push_back(number);
        }
        let partial = self.open.get_mut(&number).filter(|partial| partial.count == count)?;
        partial.parts.insert(part, bytes.to_vec());
        if partial.parts.len() < count {
            return None;
        }
        self.order.retain(|open| *open != number);
        let partial = self.open.remove(&number)?;
        Some(partial.parts.into_values().flatten().collect())
    }
}
