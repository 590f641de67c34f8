use super::{HALF_MAX, HandleCache};
use crate::watch::events::Handle;
use wirefs_op::FileId;

fn handle(number: usize) -> Handle {
    Handle { fsid: 1, kind: 1, bytes: number.to_ne_bytes().into() }
}

fn id(number: usize) -> FileId {
    FileId { fs: 0, ino: number as u64, generation: 0 }
}

#[test]
fn used_entries_stay_and_others_are_evicted() {
    let mut cache = HandleCache::default();
    for number in 0..HALF_MAX * 4 {
        cache.insert(handle(number), id(number));
        assert_eq!(cache.find(&handle(0)), Some(id(0)), "used all the time");
        assert!(cache.young.len() + cache.old.len() <= 2 * HALF_MAX);
    }
    assert_eq!(cache.find(&handle(1)), None);
    assert_eq!(cache.find(&handle(HALF_MAX * 4 - 1)), Some(id(HALF_MAX * 4 - 1)));
    cache.clear();
    assert_eq!(cache.find(&handle(0)), None);
}
