//! Blocks that did not arrive in time: late, or gone.
//!
//! A missing packet may still be in a queue, in a receive buffer, or delayed by a host. After some minutes no
//! packet is left. Until then the blocks that only a missing block names must not be deleted.
//!
//! A store with an index sees each reply, so it knows since when a block is missing. Without an index a block
//! is seen only when it is requested. Two failed requests may then be a coincidence, as when this machine was
//! delayed both times.
//!
//! ```text
//! present ── lost ──> lost since then ── GONE_AFTER ──> gone
//!    └────── missed ──> missed since then ── missed, GONE_AFTER later ──> missed again ── the same ──> gone
//! ```
//!
//! The second step covers a first failure long ago: the block may have passed unseen since. In each state a
//! block that is seen becomes present.

use std::collections::BTreeMap;
use std::time::Instant;

use wirefs_blocks::id::BlockId;

use crate::limits::{GONE_AFTER, MISSING_BLOCKS_MAX};

#[derive(Clone, Copy, Debug)]
enum Missing {
    /// Not seen since, with an index.
    Lost { since: Instant },
    /// A request failed, then and perhaps later.
    Missed { since: Instant },
    /// A request failed again, long after the first.
    MissedAgain { since: Instant },
    /// A request failed a third time, long after the second.
    Gone,
}

/// The missing blocks.
#[derive(Debug, Default)]
pub(crate) struct MissingBlocks {
    missing: BTreeMap<BlockId, Missing>,
}

impl MissingBlocks {
    /// Records that all packets of an indexed block are missing. A block for which there is no room counts as
    /// late while it is missing.
    pub(crate) fn lose(&mut self, id: BlockId, now: Instant) {
        match self.missing.get_mut(&id) {
            Some(Missing::Lost { .. } | Missing::Gone) => {}
            Some(missing) => *missing = Missing::Lost { since: now },
            None => self.begin(id, Missing::Lost { since: now }),
        }
    }

    /// Records a failed request. A block for which there is no room counts as late.
    pub(crate) fn miss(&mut self, id: BlockId, now: Instant) {
        let Some(missing) = self.missing.get_mut(&id) else {
            return self.begin(id, Missing::Missed { since: now });
        };
        let is_long_ago = |since| now.saturating_duration_since(since) >= GONE_AFTER;
        match *missing {
            Missing::Missed { since } if is_long_ago(since) => *missing = Missing::MissedAgain { since: now },
            Missing::MissedAgain { since } if is_long_ago(since) => *missing = Missing::Gone,
            Missing::Lost { .. } | Missing::Missed { .. } | Missing::MissedAgain { .. } | Missing::Gone => {}
        }
    }

    fn begin(&mut self, id: BlockId, missing: Missing) {
        if self.missing.len() < MISSING_BLOCKS_MAX {
            self.missing.insert(id, missing);
        }
    }

    /// Removes a block that arrived, or is no longer needed.
    pub(crate) fn settle(&mut self, id: BlockId) {
        if !self.missing.is_empty() {
            self.missing.remove(&id);
        }
    }

    /// Returns `None` if the block is not missing, else whether all its packets are known to be.
    pub(crate) fn missing(&self, id: BlockId) -> Option<bool> {
        self.missing.get(&id).map(|missing| matches!(missing, Missing::Lost { .. }))
    }

    /// Returns blocks whose packets are all missing, at most `count_max`.
    pub(crate) fn lost(&self, count_max: usize) -> Vec<BlockId> {
        let lost = self.missing.iter().filter(|(_, missing)| matches!(missing, Missing::Lost { .. }));
        lost.map(|(id, _)| *id).take(count_max).collect()
    }

    /// Returns whether the block will not arrive.
    pub(crate) fn is_gone(&self, id: BlockId, now: Instant) -> bool {
        match self.missing.get(&id) {
            Some(Missing::Lost { since }) => now.saturating_duration_since(*since) >= GONE_AFTER,
            Some(Missing::Gone) => true,
            Some(Missing::Missed { .. } | Missing::MissedAgain { .. }) | None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use wirefs_blocks::id::WriterId;

    fn id(counter: u64) -> BlockId {
        BlockId::new(counter, WriterId(0)).unwrap()
    }

    #[test]
    fn indexed_block_is_late_at_first_and_gone_after_minutes() {
        let (begun, mut missing_blocks) = (Instant::now(), MissingBlocks::default());
        assert!(!missing_blocks.is_gone(id(1), begun + GONE_AFTER), "no request failed");
        missing_blocks.lose(id(1), begun);
        // A failed request does not restart the time.
        missing_blocks.miss(id(1), begun + GONE_AFTER / 2);
        assert!(!missing_blocks.is_gone(id(1), begun + GONE_AFTER - Duration::from_secs(1)));
        assert!(missing_blocks.is_gone(id(1), begun + GONE_AFTER));
        missing_blocks.settle(id(1));
        assert!(!missing_blocks.is_gone(id(1), begun + GONE_AFTER));
    }

    #[test]
    fn block_without_index_is_gone_after_three_failed_requests_minutes_apart() {
        let (begun, mut missing_blocks) = (Instant::now(), MissingBlocks::default());
        let later = |span: Duration| begun + span;
        for span in [Duration::ZERO, GONE_AFTER / 2, GONE_AFTER - Duration::from_secs(1)] {
            missing_blocks.miss(id(1), later(span));
            assert!(
                !missing_blocks.is_gone(id(1), later(GONE_AFTER * 10)),
                "the block may have passed in between"
            );
        }
        // Late a second time without a check in between, and requested again at once.
        for span in [Duration::ZERO, Duration::from_secs(10)] {
            missing_blocks.miss(id(1), later(GONE_AFTER + span));
            assert!(!missing_blocks.is_gone(id(1), later(GONE_AFTER * 10)));
        }
        let mut seen = MissingBlocks { missing: missing_blocks.missing.clone() };
        missing_blocks.miss(id(1), later(GONE_AFTER * 2));
        assert!(missing_blocks.is_gone(id(1), later(GONE_AFTER * 2)));
        // A block that was seen starts again.
        seen.settle(id(1));
        seen.miss(id(1), later(GONE_AFTER * 2));
        assert!(!seen.is_gone(id(1), later(GONE_AFTER * 10)));
    }

    #[test]
    fn no_block_counts_as_gone_beyond_the_limit() {
        let (begun, mut missing_blocks) = (Instant::now(), MissingBlocks::default());
        (1..=MISSING_BLOCKS_MAX as u64 + 1).for_each(|counter| missing_blocks.lose(id(counter), begun));
        assert!(missing_blocks.is_gone(id(1), begun + GONE_AFTER));
        assert!(!missing_blocks.is_gone(id(MISSING_BLOCKS_MAX as u64 + 1), begun + GONE_AFTER));
    }
}
