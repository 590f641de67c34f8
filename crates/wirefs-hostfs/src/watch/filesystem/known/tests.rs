use super::{HALF_MAX, Known};
use crate::watch::events::Handle;
use wirefs_op::FileId;

fn handle(number: usize) -> Handle {
    Handle { fsid: 1, kind: 1, bytes: number.to_ne_bytes().into() }
}

fn id(number: usize) -> FileId {
    FileId { fs: 0, ino: number as u64, generation: 0 }
}

#[test]
fn what_is_asked_for_stays_and_the_rest_is_forgotten() {
    let mut known = Known::default();
    for number in 0..HALF_MAX * 4 {
        known.insert(handle(number), id(number));
        assert_eq!(known.find(&handle(0)), Some(id(0)), "asked for all the time");
        assert!(known.young.len() + known.old.len() <= 2 * HALF_MAX);
    }
    assert_eq!(known.find(&handle(1)), None);
    assert_eq!(known.find(&handle(HALF_MAX * 4 - 1)), Some(id(HALF_MAX * 4 - 1)));
    known.clear();
    assert_eq!(known.find(&handle(0)), None);
}
