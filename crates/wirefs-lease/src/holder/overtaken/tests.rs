//! Tests of recalls that overtake replies.

use super::Overtaken;
use crate::limits::OVERTAKEN_MAX;
use crate::recall::LeaseItem;
use wirefs_op::{FileId, Time};

const DIR: FileId = FileId { fs: 0, ino: 1, generation: 1 };
const OTHER: FileId = FileId { fs: 0, ino: 2, generation: 1 };

#[test]
fn a_recall_overtakes_replies_to_earlier_requests() {
    let mut overtaken = Overtaken::default();
    overtaken.item(Time(5), &LeaseItem::whole(DIR));
    for sent in [4, 5] {
        assert!(overtaken.object(DIR, Time(sent)) && overtaken.name(DIR, b"x", Time(sent)));
        assert!(!overtaken.object(OTHER, Time(sent)) && !overtaken.name(OTHER, b"x", Time(sent)));
    }
    assert!(!overtaken.object(DIR, Time(6)) && !overtaken.name(DIR, b"x", Time(6)));
}

#[test]
fn a_recall_of_one_name_overtakes_that_name_the_attributes_and_the_listing() {
    let mut overtaken = Overtaken::default();
    overtaken.item(Time(5), &LeaseItem::named(DIR, "x"));
    assert!(overtaken.name(DIR, b"x", Time(4)) && overtaken.object(DIR, Time(4)));
    assert!(!overtaken.name(DIR, b"y", Time(4)));
    overtaken.item(Time(7), &LeaseItem::whole(DIR));
    assert!(overtaken.name(DIR, b"x", Time(6)) && overtaken.name(DIR, b"y", Time(6)));
    overtaken.item(Time(9), &LeaseItem::named(DIR, "x"));
    assert!(overtaken.name(DIR, b"y", Time(6)) && !overtaken.name(DIR, b"y", Time(8)));
    assert!(overtaken.object(DIR, Time(8)));
}

#[test]
fn a_recall_of_everything_overtakes_everything() {
    let mut overtaken = Overtaken::default();
    overtaken.everything(Time(5));
    assert!(overtaken.object(DIR, Time(5)) && overtaken.name(OTHER, b"x", Time(0)));
    assert!(!overtaken.object(DIR, Time(6)));
}

#[test]
fn records_that_no_pending_request_needs_are_discarded() {
    let mut overtaken = Overtaken::default();
    overtaken.everything(Time(2));
    overtaken.item(Time(4), &LeaseItem::whole(OTHER));
    for (at, name) in [(5, "x"), (6, "y"), (7, "x")] {
        overtaken.item(Time(at), &LeaseItem::named(DIR, name));
    }
    overtaken.prune(Some(Time(6)));
    assert_eq!((overtaken.entries, overtaken.recalled.len(), overtaken.everything), (2, 1, None));
    assert!(overtaken.name(DIR, b"x", Time(6)) && overtaken.name(DIR, b"y", Time(6)));
    overtaken.prune(Some(Time(7)));
    assert!(!overtaken.name(DIR, b"y", Time(6)) && overtaken.name(DIR, b"x", Time(7)));
    overtaken.prune(None);
    assert_eq!((overtaken.entries, overtaken.latest), (0, None));
}

#[test]
fn too_many_recalls_overtake_everything() {
    let mut overtaken = Overtaken::default();
    for ino in 0..OVERTAKEN_MAX as u64 {
        overtaken.item(Time(ino), &LeaseItem::whole(FileId { ino: 100 + ino, ..DIR }));
        overtaken.item(Time(ino), &LeaseItem::whole(FileId { ino: 100, ..DIR }));
    }
    let last = Time(OVERTAKEN_MAX as u64);
    assert!(!overtaken.object(OTHER, Time(0)));
    overtaken.item(last, &LeaseItem::named(DIR, "x"));
    assert!(overtaken.object(OTHER, Time(0)) && overtaken.object(OTHER, last));
    assert!(!overtaken.object(OTHER, Time(last.0 + 1)));
    assert_eq!(overtaken.entries, 0);
}
