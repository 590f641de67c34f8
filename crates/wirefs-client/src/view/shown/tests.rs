use super::*;

// S-108
#[test]
fn an_object_is_not_shown_by_the_inode_number_of_another() {
    let id = |ino| FileId { fs: 0, ino, generation: 7 };
    let stat = |ino| Stat::blank(id(ino), Kind::File);
    let mut ahead = Ahead::default();
    assert_eq!(ahead.shown_ino(id(5)), None);
    // It was 5 before it was made again.
    ahead.shown.tell(id(9), ShownAs::of(5, &stat(9), &stat(5)));
    assert_eq!(ahead.shown_ino(id(9)), Some(5));
    assert!(ahead.shown_ino(id(5)).is_some_and(|ino| ino != 5 && ino != 9));
    ahead.shown.forget(id(9));
    assert_eq!((ahead.shown_ino(id(5)), ahead.shown_ino(id(9))), (None, None));
}

// S-14
#[test]
fn an_object_keeps_its_inode_number_under_the_provisional_id_after_its_confirmation() {
    let (made, confirmed) = (FileId::provisional(5), FileId { fs: 0, ino: 9, generation: 7 });
    let stat = |id| Stat::blank(id, Kind::File);
    let mut ahead = Ahead::default();
    ahead.shown.tell(confirmed, ShownAs::of(ino_of(made), &stat(confirmed), &stat(made)));
    assert_eq!(ahead.shown_ino(confirmed), Some(ino_of(made)));
    // Listings that were begun earlier still have the provisional id.
    assert_eq!(ahead.shown_ino(made), None);
}
