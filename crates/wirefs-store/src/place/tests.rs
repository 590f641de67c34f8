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
    assert!(matches!(Place::open(&dir), Err(PlaceError::Busy(_))));
    place.release();
    let next = Place::open(&dir);
    assert!(matches!(&next, Ok(next) if next.dir() == dir), "{next:?}");
    std::fs::remove_dir_all(&dir).unwrap();
}
