use super::super::tests::stat;
use super::*;
use crate::names::ROOT;
use crate::trust::{Known, Trust};
use std::time::Duration;
use wirefs_op::{Kind, Time};

#[test]
fn what_is_forgotten_takes_no_room() {
    let trust = Trust::within(Time(1), Duration::from_nanos(5));
    let known = Known::since(Time(1));
    let mut names = Names::new(stat(1, Kind::Directory), known);
    let empty = names.bytes();
    assert_eq!(empty, NODE_BYTES);
    let (dir, _) = names.learn(&stat(2, Kind::Directory), known, &trust);
    let (file, _) = names.learn(&stat(3, Kind::File), known, &trust);
    names.link(ROOT, b"dir", dir);
    names.link(dir, b"first", file);
    names.link(dir, b"second", file);
    assert_eq!(names.bytes(), 3 * NODE_BYTES + COPIES * (3 + 5 + 6));
    // Moved behind our back: a directory has one name.
    names.link(ROOT, b"moved", dir);
    names.rename((dir, b"first"), (ROOT, b"third"), false);
    names.rename((dir, b"second"), (ROOT, b"third"), false);
    assert!(names.tell_absent(dir, b"nothing"));
    assert_eq!(names.bytes(), 3 * NODE_BYTES + COPIES * (5 + 5) + ABSENT_BYTES);
    names.drop_if_free(file);
    names.drop_if_free(dir);
    assert_eq!(names.bytes(), empty);
}
