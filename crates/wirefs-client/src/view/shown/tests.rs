use super::*;

// S-108
#[test]
fn an_object_is_not_shown_by_the_inode_number_of_another() {
    let id = |ino| FileId { fs: 0, ino, generation: 7 };
    let stat = |ino| Stat::blank(id(ino), Kind::File);
    let mut ahead = Ahead::default();
    assert_eq!(ahead.shown_ino(id(5)), None);
    // It was 5 before it was made again.
    ahead.shown.tell(id(9), Told::of(5, &stat(9), &stat(5)));
    assert_eq!(ahead.shown_ino(id(9)), Some(5));
    assert!(ahead.shown_ino(id(5)).is_some_and(|ino| ino != 5 && ino != 9));
    ahead.shown.forget(id(9));
    assert_eq!((ahead.shown_ino(id(5)), ahead.shown_ino(id(9))), (None, None));
}
