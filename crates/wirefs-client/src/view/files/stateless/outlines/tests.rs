use super::*;
use wirefs_cache::TreeNodeId;

fn id(number: u64) -> Id {
    (TreeNodeId(7), number)
}

#[test]
fn outlines_stay_within_their_limit_and_the_oldest_go_first() {
    const NAMES: usize = 100;
    let each = OUTLINE_BYTES + 8 * NAMES;
    let mut outlines = Outlines::within(3 * each);
    for number in 0..10 {
        outlines.insert(id(number), 0, 0, vec![number; NAMES]);
        assert!(outlines.bytes() <= 3 * each);
    }
    assert_eq!((0..10).filter(|number| outlines.contains(id(*number))).collect::<Vec<_>>(), [7, 8, 9]);
    outlines.insert(id(10), 0, 0, vec![1; 4 * NAMES]);
    assert_eq!(outlines.bytes(), 0, "one that is too long has no room");
}

#[test]
fn outlines_of_directories_that_are_gone_are_dropped() {
    let mut outlines = Outlines::within(1 << 20);
    outlines.insert(id(1), 5, 0, vec![2, 1, 3]);
    outlines.insert((TreeNodeId(8), 1), 5, 0, vec![1]);
    outlines.retain(|(dir, _)| *dir == TreeNodeId(7));
    assert_eq!(outlines.beginning(id(1), 2), Some((5, vec![1, 2])));
    assert_eq!(outlines.beginning((TreeNodeId(8), 1), 2), None);
    assert_eq!(outlines.bytes(), OUTLINE_BYTES + 24);
}

#[test]
fn beginning_of_a_continued_reading_includes_the_names_before_it() {
    let mut outlines = Outlines::within(1 << 20);
    outlines.insert(id(1), 5, 2, vec![4, 3, 2, 1]);
    assert_eq!(outlines.beginning(id(1), 0), Some((5, vec![3, 4])));
    assert_eq!(outlines.beginning(id(1), 1), Some((5, vec![2, 3, 4])));
    assert_eq!(outlines.beginning(id(1), usize::MAX), Some((5, vec![1, 2, 3, 4])));
}
