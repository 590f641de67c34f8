use super::*;

const NODE: TreeNodeId = TreeNodeId(7);

fn words(files: &mut Files, places: impl Iterator<Item = u64>) {
    for place in places {
        files.remember_written(NODE, place * 8, Bytes::from_static(b"a marker"));
        assert!(files.remembered.notes.len() <= NOTES_MAX);
    }
}

fn known(files: &Files, place: u64) -> bool {
    files.contents.get(&NODE).is_some_and(|contents| contents.ranges.read(place * 8, place * 8 + 8).is_some())
}

// Where each write behind the limit passes over all notes, this takes hours.
#[test]
fn many_small_writes_push_out_the_oldest_of_them() {
    let mut files = Files::new(256 * 1024 * 1024);
    let count = 4 * NOTES_MAX as u64;
    words(&mut files, 0..count);
    assert!(!known(&files, 0));
    assert!((count - NOTES_MAX as u64 / 2..count).all(|place| known(&files, place)));
    assert!(files.cached_bytes() <= NOTES_MAX * 8);
}

#[test]
fn writes_to_one_place_push_out_nothing_else() {
    let mut files = Files::new(256 * 1024 * 1024);
    words(&mut files, (0..100).chain(std::iter::repeat_n(3, 4 * NOTES_MAX)));
    assert!((0..100).all(|place| known(&files, place)));
    assert_eq!(files.cached_bytes(), 800);
}
