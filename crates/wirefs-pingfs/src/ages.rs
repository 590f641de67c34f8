//! Approximate registration times of blocks. Ids grow with time, so a few marks cover all blocks.

use std::time::Instant;

use wirefs_blocks::id::BlockId;

use crate::limits::AGES_MAX;

/// Marks of which id was assigned when.
#[derive(Debug, Default)]
pub(crate) struct BlockAges {
    marks: Vec<(BlockId, Instant)>,
}

impl BlockAges {
    /// Records that a block is registered now.
    pub(crate) fn note(&mut self, id: BlockId, now: Instant) {
        let spacing =
            self.marks.first().map_or(0, |(_, first)| (now - *first).as_millis() / AGES_MAX as u128);
        let is_near = self
            .marks
            .last()
            .is_some_and(|(last_id, last)| id <= *last_id || (now - *last).as_millis() <= spacing.max(1));
        if is_near {
            return;
        }
        if self.marks.len() >= AGES_MAX {
            let mut nth = 0;
            self.marks.retain(|_| {
                nth += 1;
                nth % 2 == 1
            });
        }
        self.marks.push((id, now));
    }

    /// Returns when a block was registered, or slightly earlier; `None` if it is older than all marks.
    pub(crate) fn registered(&self, id: BlockId) -> Option<Instant> {
        let after = self.marks.partition_point(|(mark, _)| *mark <= id);
        self.marks.get(after.checked_sub(1)?).map(|(_, at)| *at)
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
    fn age_is_approximate_and_the_number_of_marks_is_bounded() {
        let begun = Instant::now();
        let mut ages = BlockAges::default();
        for counter in 1..=10_000 {
            ages.note(id(counter), begun + Duration::from_millis(10 * counter));
        }
        assert!(ages.marks.len() <= AGES_MAX);
        for counter in [1, 77, 5_000, 10_000] {
            let at = ages.registered(id(counter)).unwrap();
            let true_at = begun + Duration::from_millis(10 * counter);
            assert!(at <= true_at, "the reported age is never too small");
            assert!(true_at - at <= Duration::from_secs(4), "{counter}: {:?}", true_at - at);
        }
    }

    #[test]
    fn block_older_than_all_marks_has_no_age() {
        let mut ages = BlockAges::default();
        ages.note(id(5), Instant::now());
        assert_eq!(ages.registered(id(4)), None);
    }
}
