use super::{RECENT_MAX, RecentReports};
use wirefs_op::FileId;

fn id(ino: usize) -> FileId {
    FileId { fs: 0, ino: ino as u64, generation: 1 }
}

#[test]
fn the_latest_name_of_the_latest_objects_is_kept() {
    let mut report = RecentReports::default();
    report.insert(id(0), 1, &c"before".into());
    for ino in 0..=RECENT_MAX {
        report.insert(id(ino), 2, &c"name".into());
    }
    assert_eq!(report.place(id(0)), None, "there is no room for it");
    assert_eq!(report.place(id(1)), Some((2, c"name".into())));
    report.insert(id(1), 3, &c"moved".into());
    assert_eq!(report.place(id(1)), Some((3, c"moved".into())));
    assert_eq!((report.places.len(), report.order.len()), (RECENT_MAX, RECENT_MAX));
}
