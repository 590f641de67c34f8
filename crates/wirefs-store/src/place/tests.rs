use super::*;

#[test]
fn contents_are_known_to_be_of_one_server() {
    let dir = std::env::temp_dir().join(format!("wirefs-server-{}", std::process::id()));
    let place = Place::open(&dir).unwrap();
    assert!(!place.is_of(b"") && !place.is_of(b"one"), "nobody knows whose they are");
    for identity in [b"one".as_slice(), b"", b"another"] {
        place.set_server(identity).unwrap();
        let is_of =
            [b"one".as_slice(), b"", b"another"].map(|other| place.is_of(other) == (other == identity));
        assert_eq!(is_of, [true; 3]);
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_place_is_one_mounts_until_it_is_released() {
    let dir = std::env::temp_dir().join(format!("wirefs-place-{}", std::process::id()));
    let place = Place::open(&dir).unwrap();
    assert!(matches!(Place::open(&dir), Err(PlaceError::Busy { .. })));
    place.release();
    let next = Place::open(&dir);
    assert!(matches!(&next, Ok(next) if next.dir() == dir), "{next:?}");
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn the_note_of_a_mount_is_read_by_those_who_find_its_place_in_use() {
    let dir = std::env::temp_dir().join(format!("wirefs-note-{}", std::process::id()));
    let noted = || match Place::open(&dir) {
        Err(PlaceError::Busy { note, .. }) => note,
        other => panic!("it is in use: {other:?}"),
    };
    let place = Place::open(&dir).unwrap();
    assert_eq!(noted(), b"");
    place.note(b"a long note").unwrap();
    place.note(b"a note").unwrap();
    assert_eq!(noted(), b"a note");
    place.release();
    let _next = Place::open(&dir).unwrap();
    assert_eq!(noted(), b"", "the next one has not left a note");
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_lock_that_was_removed_with_its_directory_is_nobodys() {
    let dir = std::env::temp_dir().join(format!("wirefs-removed-{}", std::process::id()));
    let place = Place::open(&dir).unwrap();
    let opened = open_lock(&dir).unwrap();
    assert!(is_in_place(&opened, &dir));
    std::fs::remove_file(dir.join(LOCK)).unwrap();
    assert!(!is_in_place(&opened, &dir));
    let _other = open_lock(&dir).unwrap();
    assert!(!is_in_place(&opened, &dir));
    drop(place);
    std::fs::remove_dir_all(&dir).unwrap();
}
