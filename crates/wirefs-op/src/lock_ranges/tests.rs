use super::*;

fn range(kind: LockKind, start: u64, end: u64) -> LockRange {
    LockRange { kind, start, end, pid: 7 }
}

#[test]
fn unlocking_the_middle_leaves_both_sides() {
    let mut ranges = LockRanges::default();
    ranges.set(range(LockKind::Write, 0, 99));
    ranges.set(range(LockKind::Unlock, 40, 59));
    let expected = [range(LockKind::Write, 0, 39), range(LockKind::Write, 60, 99)];
    assert_eq!(ranges.to_vec(), expected);
}

#[test]
fn adjacent_ranges_of_one_kind_are_merged() {
    let mut ranges = LockRanges::default();
    ranges.set(range(LockKind::Read, 0, 9));
    ranges.set(range(LockKind::Read, 10, u64::MAX));
    assert_eq!(ranges.to_vec(), [range(LockKind::Read, 0, u64::MAX)]);
}

#[test]
fn a_lock_of_another_kind_replaces_the_range_it_covers() {
    let mut ranges = LockRanges::default();
    ranges.set(range(LockKind::Read, 0, u64::MAX));
    ranges.set(range(LockKind::Write, 5, 5));
    let expected =
        [range(LockKind::Read, 0, 4), range(LockKind::Write, 5, 5), range(LockKind::Read, 6, u64::MAX)];
    assert_eq!(ranges.to_vec(), expected);
    assert_eq!(ranges.conflict(range(LockKind::Read, 0, 9)), Some(expected[1]));
    assert_eq!(ranges.conflict(range(LockKind::Read, 0, 4)), None);
}

#[test]
fn restoring_sets_the_earlier_locks_and_releases_the_rest() {
    let before = [range(LockKind::Read, 5, 14)];
    let back = restoring(range(LockKind::Write, 0, 9), &before);
    assert_eq!(back, [range(LockKind::Read, 5, 9), range(LockKind::Unlock, 0, 4)]);
}
