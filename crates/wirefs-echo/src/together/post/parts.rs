//! What came in several packets, until all of them are there.

use std::collections::{BTreeMap, VecDeque};

/// Parts of one thing at most.
const PARTS_MAX: usize = 256;

#[derive(Debug)]
struct Partial {
    parts: BTreeMap<usize, Vec<u8>>,
    count: usize,
}

/// Things that are put together, the newest so many.
#[derive(Debug)]
pub(super) struct Parts {
    most: usize,
    open: BTreeMap<u128, Partial>,
    order: VecDeque<u128>,
}

impl Parts {
    pub(super) fn new(most: usize) -> Parts {
        Parts { most, open: BTreeMap::new(), order: VecDeque::new() }
    }

    /// Adds a part; the whole when it was the last one that lacked.
    pub(super) fn add(&mut self, number: u128, part: usize, count: usize, bytes: &[u8]) -> Option<Vec<u8>> {
        if count == 1 {
            return Some(bytes.to_vec());
        }
        if part >= count || count > PARTS_MAX {
            return None;
        }
        if !self.open.contains_key(&number) {
            if self.order.len() >= self.most
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
