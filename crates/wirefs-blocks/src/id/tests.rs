use super::*;

#[test]
fn the_counter_counts_before_the_node() {
    let id = |counter, node| BlockId::new(counter, NodeId(node)).unwrap();
    assert!(id(1, 9) < id(2, 0));
    assert!(id(2, 0) < id(2, 1));
    assert_eq!((id(7, 3).counter(), id(7, 3).node()), (7, NodeId(3)));
    assert_eq!(BlockId::from_bits(id(7, 3).bits()), Some(id(7, 3)));
}

#[test]
fn zero_is_no_id() {
    assert_eq!(BlockId::new(0, NodeId(5)), None);
    assert_eq!(BlockId::from_bits(5), None);
}

#[test]
fn an_id_is_larger_than_all_that_were_observed() {
    let mut ids = Ids::new(NodeId(2));
    let first = ids.issue().unwrap();
    let foreign = BlockId::new(40, NodeId(9)).unwrap();
    ids.observe(foreign);
    ids.observe(first);
    assert_eq!(ids.issue(), BlockId::new(41, NodeId(2)));
}

#[test]
fn ids_end_and_do_not_begin_again() {
    let mut ids = Ids::new(NodeId(0));
    ids.skip(u64::MAX);
    assert_eq!(ids.issue(), None);
    assert_eq!(ids.issue(), None);
}
