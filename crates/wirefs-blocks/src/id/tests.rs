use super::*;

#[test]
fn counter_takes_precedence_over_node_in_id_order() {
    let id = |counter, node| BlockId::new(counter, WriterId(node)).unwrap();
    assert!(id(1, 9) < id(2, 0));
    assert!(id(2, 0) < id(2, 1));
    assert_eq!((id(7, 3).counter(), id(7, 3).node()), (7, WriterId(3)));
    assert_eq!(BlockId::from_bits(id(7, 3).bits()), Some(id(7, 3)));
}

#[test]
fn zero_is_not_a_valid_id() {
    assert_eq!(BlockId::new(0, WriterId(5)), None);
    assert_eq!(BlockId::from_bits(5), None);
}

#[test]
fn allocated_id_is_larger_than_all_observed_ids() {
    let mut ids = IdAllocator::new(WriterId(2));
    let first = ids.allocate().unwrap();
    let foreign = BlockId::new(40, WriterId(9)).unwrap();
    ids.observe(foreign);
    ids.observe(first);
    assert_eq!(ids.allocate(), BlockId::new(41, WriterId(2)));
}

#[test]
fn exhausted_ids_do_not_wrap_around() {
    let mut ids = IdAllocator::new(WriterId(0));
    ids.skip(u64::MAX);
    assert_eq!(ids.allocate(), None);
    assert_eq!(ids.allocate(), None);
}
