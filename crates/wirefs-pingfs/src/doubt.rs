//! Blocks that did not come when they should have: late, or gone.
//!
//! A packet that is missing may still be in a queue, in a receive buffer, or behind a host that was held up. Nothing of it is
//! left after some minutes; until then what only such a block names must not be let go of.

use std::collections::BTreeMap;
use std::time::Instant;

use wirefs_blocks::id::BlockId;

use crate::limits::{DOUBTS_MAX, GONE_AFTER};

/// Blocks that are missing, since when.
#[derive(Debug, Default)]
pub(crate) struct Doubt {
    since: BTreeMap<BlockId, Instant>,
}

impl Doubt {
    /// A block is missing. One that finds no room counts as late for as long as it is missing.
    pub(crate) fn note(&mut self, id: BlockId, now: Instant) {
        if self.since.len() < DOUBTS_MAX {
            self.since.entry(id).or_insert(now);
        }
    }

    /// It came, or is not wanted any more.
    pub(crate) fn settle(&mut self, id: BlockId) {
        if !self.since.is_empty() {
            self.since.remove(&id);
        }
    }

    /// Whether it has been missing for so long that it will not come.
    pub(crate) fn is_gone(&self, id: BlockId, now: Instant) -> bool {
        self.since.get(&id).is_some_and(|since| now.saturating_duration_since(*since) >= GONE_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use wirefs_blocks::id::NodeId;

    fn id(counter: u64) -> BlockId {
        BlockId::new(counter, NodeId(0)).unwrap()
    }

    #[test]
    fn missing_block_is_late_at_first_and_gone_after_minutes() {
        let (begun, mut doubt) = (Instant::now(), Doubt::default());
        assert!(!doubt.is_gone(id(1), begun + GONE_AFTER), "nobody missed it");
        doubt.note(id(1), begun);
        // That it is missed once more makes it no younger.
        doubt.note(id(1), begun + GONE_AFTER / 2);
        assert!(!doubt.is_gone(id(1), begun + GONE_AFTER - Duration::from_secs(1)));
        assert!(doubt.is_gone(id(1), begun + GONE_AFTER));
        doubt.settle(id(1));
        assert!(!doubt.is_gone(id(1), begun + GONE_AFTER));
    }

    #[test]
    fn there_is_a_limit_beyond_which_nothing_counts_as_gone() {
        let (begun, mut doubt) = (Instant::now(), Doubt::default());
        (1..=DOUBTS_MAX as u64 + 1).for_each(|counter| doubt.note(id(counter), begun));
        assert!(doubt.is_gone(id(1), begun + GONE_AFTER));
        assert!(!doubt.is_gone(id(DOUBTS_MAX as u64 + 1), begun + GONE_AFTER));
    }
}
