//! Tests of missed recalls.

use super::Missed;
use crate::limits::MISSED_MAX;
use crate::recall::LeaseItem;
use wirefs_op::FileId;

fn id(ino: u64) -> FileId {
    FileId { fs: 0, ino, generation: 1 }
}

#[test]
fn a_missed_directory_includes_its_names() {
    let mut missed = Missed::default();
    for item in [LeaseItem::named(id(1), "a"), LeaseItem::named(id(2), "b"), LeaseItem::named(id(1), "c")] {
        assert!(missed.add(item));
    }
    assert!(missed.add(LeaseItem::whole(id(1))) && missed.add(LeaseItem::named(id(1), "d")));
    let Missed::Items(items) = missed else { panic!("not so many") };
    assert_eq!(
        items.into_iter().collect::<Vec<_>>(),
        [LeaseItem::whole(id(1)), LeaseItem::named(id(2), "b")]
    );
}

#[test]
fn too_many_missed_items_become_everything() {
    let mut missed = Missed::default();
    let most = MISSED_MAX as u64;
    assert!((0..most).all(|ino| missed.add(LeaseItem::whole(id(ino)))));
    assert!(missed.add(LeaseItem::whole(id(0))), "a repeated object takes no space");
    assert!(!missed.add(LeaseItem::whole(id(most))) && !missed.add(LeaseItem::whole(id(1))));
    assert!(matches!(missed, Missed::Everything));
}
