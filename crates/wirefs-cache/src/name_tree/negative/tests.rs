use super::*;

#[test]
fn a_negative_entry_is_recorded_until_it_is_removed() {
    let mut negative = NegativeEntries::default();
    assert!(negative.insert(TreeNodeId(1), b"a") && negative.insert(TreeNodeId(1), b"a"));
    assert_eq!(negative.count, 1);
    assert!(!negative.remove(TreeNodeId(2), b"a"));
    assert!(negative.remove(TreeNodeId(1), b"a"));
    assert!(!negative.remove(TreeNodeId(1), b"a"));
    assert_eq!((negative.count, negative.directories()), (0, vec![]));
}

#[test]
fn negative_entries_are_limited() {
    let mut negative = NegativeEntries::default();
    let names = (0..PER_DIRECTORY_MAX + 10)
        .filter(|index| negative.insert(TreeNodeId(1), &index.to_le_bytes()))
        .count();
    assert_eq!(names, PER_DIRECTORY_MAX);
    let all: usize = (2..200)
        .map(|dir| {
            (0..1000_u32).filter(|index| negative.insert(TreeNodeId(dir), &index.to_le_bytes())).count()
        })
        .sum();
    assert_eq!(names + all, NEGATIVE_ENTRIES_MAX);
    assert_eq!(negative.remove_all(TreeNodeId(1)).len(), PER_DIRECTORY_MAX);
    assert!(negative.insert(TreeNodeId(1), b"again"));
}

#[test]
fn a_lower_limit_allows_fewer_negative_entries() {
    let mut negative = NegativeEntries::default();
    negative.limit(100);
    let names = (0..1000_u32).filter(|index| negative.insert(TreeNodeId(1), &index.to_le_bytes())).count();
    assert_eq!(names, 100);
}
