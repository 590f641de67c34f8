//! When blocks were registered, roughly: ids grow, so a few marks tell it of all.

use std::time::Instant;

use wirefs_blocks::id::BlockId;

use crate::limits::AGES_MAX;

/// Marks of which id was given out when.
#[derive(Debug, Default)]
pub(crate) struct Ages {
    marks: Vec<(BlockId, Instant)>,
}

impl Ages {
    /// Notes that a block was registered now.
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

    /// When this block was registered, or a little before; none of one that is older than all marks.
    pub(crate) fn registered(&self, id: BlockId) -> Option<Instant> {
        let after = self.marks.partition_point(|(mark, _)| *mark <= id);
        self.marks.get(after.checked_sub(1)?).map(|(_, at)| *at)
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
    fn age_is_known_within_a_few_marks_and_their_number_is_bounded() {
        let begun = Instant::now();
        let mut ages = Ages::default();
        for counter in 1..=10_000 {
            ages.note(id(counter), begun + Duration::from_millis(10 * counter));
        }
        assert!(ages.marks.len() <= AGES_MAX);
        for counter in [1, 77, 5_000, 10_000] {
            let at = ages.registered(id(counter)).unwrap();
            let true_at = begun + Duration::from_millis(10 * counter);
            assert!(at <= true_at, "never younger than it is said to be");
            assert!(true_at - at <= Duration::from_secs(4), "{counter}: {:?}", true_at - at);
        }
    }

    #[test]
    fn block_older_than_all_marks_has_no_age() {
        let mut ages = Ages::default();
        ages.note(id(5), Instant::now());
        assert_eq!(ages.registered(id(4)), None);
    }
}
