//! Blocks that did not come when they should have: late, or gone.
//!
//! A packet that is missing may still be in a queue, in a receive buffer, or behind a host that was held up. Nothing of it is
//! left after some minutes; until then what only such a block names must not be let go of.
//!
//! Who has an index sees each packet that comes back, and so knows since when a block is missing. Without one a block is seen
//! only where somebody asks for it: that it was missed twice may be chance, as when this machine was held up each time.
//!
//! ```text
//! nothing ── lost ──> lost since then ── GONE_AFTER ──> gone
//!    └────── missed ──> missed since then ── missed, GONE_AFTER later ──> missed again ── the same ──> gone
//! ```
//!
//! The second step is for a first time that is long ago: the block may have come by unseen since. Whatever it is: it is settled as soon as the block is seen.

use std::collections::BTreeMap;
use std::time::Instant;

use wirefs_blocks::id::BlockId;

use crate::limits::{DOUBTS_MAX, GONE_AFTER};

#[derive(Clone, Copy, Debug)]
enum Missing {
    /// None of it was seen since.
    Lost { since: Instant },
    /// It was asked for in vain, then and perhaps later.
    Missed { since: Instant },
    /// The same, long after a first time.
    MissedAgain { since: Instant },
    /// And long after that, too.
    Gone,
}

/// Blocks that are missing.
#[derive(Debug, Default)]
pub(crate) struct Doubt {
    missing: BTreeMap<BlockId, Missing>,
}

impl Doubt {
    /// All of a block that is watched is missing. One that finds no room counts as late for as long as it is missing.
    pub(crate) fn lose(&mut self, id: BlockId, now: Instant) {
        match self.missing.get_mut(&id) {
            Some(Missing::Lost { .. } | Missing::Gone) => {}
            Some(missing) => *missing = Missing::Lost { since: now },
            None => self.begin(id, Missing::Lost { since: now }),
        }
    }

    /// A block was asked for, after the last time that it was missed, and did not come. The same holds for one that finds no
    /// room.
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
        if self.missing.len() < DOUBTS_MAX {
            self.missing.insert(id, missing);
        }
    }

    /// It came, or is not wanted any more.
    pub(crate) fn settle(&mut self, id: BlockId) {
        if !self.missing.is_empty() {
            self.missing.remove(&id);
        }
    }

    /// Whether it is missing, and if so whether all of it is known to be.
    pub(crate) fn missing(&self, id: BlockId) -> Option<bool> {
        self.missing.get(&id).map(|missing| matches!(missing, Missing::Lost { .. }))
    }

    /// Blocks all of which is missing, so many at most.
    pub(crate) fn lost(&self, count_max: usize) -> Vec<BlockId> {
        let lost = self.missing.iter().filter(|(_, missing)| matches!(missing, Missing::Lost { .. }));
        lost.map(|(id, _)| *id).take(count_max).collect()
    }

    /// Whether it will not come.
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
    use wirefs_blocks::id::TreeNodeId;

    fn id(counter: u64) -> BlockId {
        BlockId::new(counter, TreeNodeId(0)).unwrap()
    }

    #[test]
    fn block_that_is_watched_is_late_at_first_and_gone_after_minutes() {
        let (begun, mut doubt) = (Instant::now(), Doubt::default());
        assert!(!doubt.is_gone(id(1), begun + GONE_AFTER), "nobody missed it");
        doubt.lose(id(1), begun);
        // That it is asked for in vain makes it no younger.
        doubt.miss(id(1), begun + GONE_AFTER / 2);
        assert!(!doubt.is_gone(id(1), begun + GONE_AFTER - Duration::from_secs(1)));
        assert!(doubt.is_gone(id(1), begun + GONE_AFTER));
        doubt.settle(id(1));
        assert!(!doubt.is_gone(id(1), begun + GONE_AFTER));
    }

    #[test]
    fn block_that_nobody_watches_is_gone_when_it_is_missed_again_after_minutes_twice() {
        let (begun, mut doubt) = (Instant::now(), Doubt::default());
        let later = |span: Duration| begun + span;
        for span in [Duration::ZERO, GONE_AFTER / 2, GONE_AFTER - Duration::from_secs(1)] {
            doubt.miss(id(1), later(span));
            assert!(!doubt.is_gone(id(1), later(GONE_AFTER * 10)), "it may have been there between");
        }
        // Late for the second time, and nobody looked between; asked for at once once more.
        for span in [Duration::ZERO, Duration::from_secs(10)] {
            doubt.miss(id(1), later(GONE_AFTER + span));
            assert!(!doubt.is_gone(id(1), later(GONE_AFTER * 10)));
        }
        let mut seen = Doubt { missing: doubt.missing.clone() };
        doubt.miss(id(1), later(GONE_AFTER * 2));
        assert!(doubt.is_gone(id(1), later(GONE_AFTER * 2)));
        // One that was seen begins anew.
        seen.settle(id(1));
        seen.miss(id(1), later(GONE_AFTER * 2));
        assert!(!seen.is_gone(id(1), later(GONE_AFTER * 10)));
    }

    #[test]
    fn there_is_a_limit_beyond_which_nothing_counts_as_gone() {
        let (begun, mut doubt) = (Instant::now(), Doubt::default());
        (1..=DOUBTS_MAX as u64 + 1).for_each(|counter| doubt.lose(id(counter), begun));
        assert!(doubt.is_gone(id(1), begun + GONE_AFTER));
        assert!(!doubt.is_gone(id(DOUBTS_MAX as u64 + 1), begun + GONE_AFTER));
    }
}
