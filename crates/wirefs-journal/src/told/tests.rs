use super::*;

#[test]
fn what_was_told_is_read_as_it_was_written() {
    let id = FileId { fs: 3, ino: 0x0102_0304_0506, generation: 7 };
    let answered = Told { is_answered: true, ..Told::default() };
    for told in [
        answered,
        Told { is_refused: true, ..answered },
        Told { made: Some(id), ..answered },
        Told { offset: Some(u64::MAX), ..answered },
        Told { made: Some(id), offset: Some(9), ..answered },
        Told { offset: Some(9), ..Told::default() },
    ] {
        assert_eq!(Told::decode(&told.encode()), Some(told));
    }
    let bytes = Told { made: Some(id), ..answered }.encode();
    assert_eq!(&bytes[..17], [2, 3, 0, 0, 0, 6, 5, 4, 3, 2, 1, 0, 0, 7, 0, 0, 0]);
    assert_eq!(Told::decode(&bytes[1..]), None);
    assert_eq!(Told::decode(&[16; TOLD_BYTES]), None);
}
