//! Tests of the counts of name recalls.

use super::NameRecalls;
use crate::limits::{NAME_RECALL_DIRECTORIES_MAX, NAME_RECALLS_MAX, NAME_RECALLS_SPAN};
use std::time::Duration;
use wirefs_op::{FileId, Time};

fn id(ino: u64) -> FileId {
    FileId { fs: 0, ino, generation: 1 }
}

#[test]
fn the_ninth_name_within_ten_seconds_recalls_the_whole_directory() {
    let mut named = NameRecalls::default();
    for _ in 0..NAME_RECALLS_MAX {
        assert!(named.count(Time(0), id(1)));
    }
    assert!(named.count(Time(0), id(2)), "each directory has its own count");
    assert!(!named.count(Time(0) + NAME_RECALLS_SPAN, id(1)));
    assert!(named.count(Time(0) + NAME_RECALLS_SPAN, id(1)), "a new term begins");
}

#[test]
fn recalls_of_names_far_apart_stay_single() {
    let mut named = NameRecalls::default();
    let pace = NAME_RECALLS_SPAN / u32::from(NAME_RECALLS_MAX) + Duration::from_millis(1);
    for step in 0..100 {
        assert!(named.count(Time(0) + pace * step, id(1)), "step {step}");
    }
}

#[test]
fn directories_beyond_the_limit_are_recalled_as_a_whole() {
    let mut named = NameRecalls::default();
    for ino in 0..NAME_RECALL_DIRECTORIES_MAX as u64 {
        assert!(named.count(Time(1), id(ino)));
    }
    assert!(!named.count(Time(1), id(u64::MAX)));
    let later = Time(2) + NAME_RECALLS_SPAN;
    assert!(named.count(later, id(u64::MAX)));
    assert_eq!(named.0.len(), 1);
}
