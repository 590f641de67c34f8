use super::{TOLD_MAX, Told};
use wirefs_op::FileId;

fn id(ino: usize) -> FileId {
    FileId { fs: 0, ino: ino as u64, generation: 1 }
}

#[test]
fn the_latest_place_is_kept_of_the_latest_objects() {
    let mut told = Told::default();
    told.insert(id(0), 1, &c"before".into());
    for ino in 0..=TOLD_MAX {
        told.insert(id(ino), 2, &c"name".into());
    }
    assert_eq!(told.place(id(0)), None, "there is no room for it");
    assert_eq!(told.place(id(1)), Some((2, c"name".into())));
    told.insert(id(1), 3, &c"moved".into());
    assert_eq!(told.place(id(1)), Some((3, c"moved".into())));
    assert_eq!((told.places.len(), told.order.len()), (TOLD_MAX, TOLD_MAX));
}
