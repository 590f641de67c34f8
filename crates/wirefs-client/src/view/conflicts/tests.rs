use super::*;

const WHEN: Timestamp = Timestamp { secs: 1_700_000_000, nanos: 5 };

#[test]
fn a_name_tells_what_it_was_where_and_when() {
    let name = name_of(b"notes.txt", b"box 1", WHEN, 0);
    assert_eq!(String::from_utf8(name).unwrap(), "notes.txt.wirefs-conflict-box_1-20231114T221320Z");
}

#[test]
fn numbers_follow_one_another() {
    let first = name_of(b"f", b"h", WHEN, 0);
    let second = numbered(&first, 0, 1);
    assert!(second.ends_with(b"Z-1"));
    assert_eq!(numbered(&second, 1, 2), [first.as_slice(), b"-2"].concat());
}

#[test]
fn a_long_name_still_fits() {
    let name = name_of(&[b'x'; NAME_BYTES_MAX], &[b'h'; 64], WHEN, NAMES_MAX);
    assert!(name.len() <= NAME_BYTES_MAX);
    assert!(name.ends_with(b"-64"));
}

#[test]
fn only_the_last_are_remembered_and_all_are_counted() {
    let mut conflicts = Conflicts::default();
    for number in 0..40_u8 {
        conflicts.add(vec![number]);
    }
    assert_eq!((conflicts.count, conflicts.last.len()), (40, NAMED_MAX));
    assert_eq!(conflicts.last.last(), Some(&vec![39]));
}
