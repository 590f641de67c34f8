use super::{Item, Unused};
use wirefs_cache::TreeNodeId;
use wirefs_op::Time;

const NOW: Time = Time(1_000);

#[test]
fn the_oldest_goes_first_and_only_when_there_is_too_much() {
    let mut unused = Unused::default();
    for node in 2..6 {
        assert!(unused.add(TreeNodeId(node), Item::File(100), NOW));
    }
    assert_eq!(unused.drop_oldest(400, 10, |_, _| false), None);
    assert_eq!(unused.drop_oldest(399, 10, |_, _| false), Some((TreeNodeId(2), Item::File(100))));
    assert_eq!((unused.bytes_since(NOW), unused.drop_oldest(399, 10, |_, _| false)), (300, None));
}

#[test]
fn what_is_of_no_use_any_more_goes_at_once() {
    let mut unused = Unused::default();
    unused.add(TreeNodeId(2), Item::Directory, NOW);
    unused.add(TreeNodeId(3), Item::File(7), NOW);
    let is_directory = |_, item| item == Item::Directory;
    assert_eq!(unused.drop_oldest(100, 10, is_directory), Some((TreeNodeId(2), Item::Directory)));
    assert_eq!(unused.drop_oldest(100, 10, is_directory), None);
}

#[test]
fn a_node_that_was_used_and_is_fetched_again_is_the_newest() {
    let mut unused = Unused::default();
    unused.add(TreeNodeId(2), Item::File(1), NOW);
    unused.add(TreeNodeId(3), Item::File(1), NOW);
    assert_eq!(unused.remove(TreeNodeId(2)), Some(Item::File(1)));
    assert!(unused.add(TreeNodeId(2), Item::File(1), NOW));
    assert!(!unused.add(TreeNodeId(2), Item::File(9), NOW), "it is there once");
    assert_eq!(unused.drop_oldest(0, 10, |_, _| false), Some((TreeNodeId(3), Item::File(1))));
}

#[test]
fn places_of_what_was_used_do_not_pile_up() {
    let mut unused = Unused::default();
    for node in 0..100_000 {
        unused.add(TreeNodeId(node), Item::Directory, NOW);
        unused.remove(TreeNodeId(node));
    }
    assert!(unused.order.len() < 2000, "{}", unused.order.len());
}

#[test]
fn what_came_long_ago_does_not_count_as_of_late() {
    let mut unused = Unused::default();
    unused.add(TreeNodeId(2), Item::File(10), Time(1_000));
    unused.add(TreeNodeId(3), Item::File(20), Time(1_000));
    unused.add(TreeNodeId(4), Item::File(40), Time(2_000));
    assert_eq!(unused.bytes_since(Time(1_000)), 70);
    unused.remove(TreeNodeId(3));
    assert_eq!(unused.bytes_since(Time(1_000)), 50);
    assert_eq!(unused.bytes_since(Time(1_500)), 40);
    unused.remove(TreeNodeId(2));
    assert_eq!(unused.bytes_since(Time(1_500)), 40, "it was counted out already");
    unused.remove(TreeNodeId(4));
    assert_eq!(unused.bytes_since(Time(1_500)), 0);
}

#[test]
fn there_are_no_more_of_a_kind_than_is_allowed() {
    let mut unused = Unused::default();
    for node in 2..6 {
        unused.add(TreeNodeId(node), Item::Directory, NOW);
    }
    assert_eq!(unused.drop_oldest(100, 4, |_, _| false), None);
    assert_eq!(unused.drop_oldest(100, 3, |_, _| false), Some((TreeNodeId(2), Item::Directory)));
    assert_eq!(unused.drop_oldest(100, 3, |_, _| false), None);
}
