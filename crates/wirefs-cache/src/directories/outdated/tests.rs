use super::*;

fn id(ino: u64) -> FileId {
    FileId { fs: 0, ino, generation: 1 }
}

#[test]
fn attributes_requested_before_are_outdated_and_later_ones_are_not() {
    let mut outdated = Outdated::default();
    outdated.note(id(1), Time(10));
    assert!(outdated.is_since(id(1), Time(9)) && outdated.is_since(id(1), Time(10)));
    assert!(!outdated.is_since(id(1), Time(11)) && !outdated.is_since(id(2), Time(9)));
    outdated.note(id(1), Time(20));
    assert!(outdated.is_since(id(1), Time(11)));
}

#[test]
fn overflow_outdates_all_earlier_attributes() {
    let mut outdated = Outdated::default();
    outdated.note(id(0), Time(5));
    for ino in 1..=OUTDATED_MAX as u64 {
        outdated.note(id(ino), Time(10));
    }
    assert_eq!(outdated.since.len(), OUTDATED_MAX);
    assert!(outdated.is_since(id(1 << 40), Time(5)));
    assert!(!outdated.is_since(id(1 << 40), Time(6)));
}
