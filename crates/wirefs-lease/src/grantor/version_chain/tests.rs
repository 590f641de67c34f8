//! Tests of distinguishing own changes from external ones.

use super::VersionChains;
use crate::limits::{OWN_AGE, OWN_CHANGES_MAX, OWN_OBJECTS_MAX};
use bytes::Bytes;
use std::time::Duration;
use wirefs_op::{FileId, Time};

const DIR: FileId = FileId { fs: 0, ino: 1, generation: 1 };

fn name(text: &'static str) -> Option<Bytes> {
    Some(Bytes::from_static(text.as_bytes()))
}

/// Own changes of one directory, each with a name and the versions before and after.
fn chains(changes: &[(&'static str, u64, u64)]) -> VersionChains {
    let mut chains = VersionChains::default();
    for (changed, before, after) in changes {
        chains.add(Time(0), DIR, name(changed).as_ref(), Some(*before), Some(*after));
    }
    chains
}

#[test]
fn a_late_report_is_attributed_to_own_changes() {
    let chains = chains(&[("a", 1, 2), ("b", 2, 3), ("c", 3, 4)]);
    for changed in ["a", "b", "c"] {
        for version in [2, 3, 4] {
            assert!(chains.explain(DIR, name(changed).as_ref(), Some(version)), "{changed} at {version}");
        }
    }
    assert!(!chains.explain(DIR, name("a").as_ref(), Some(5)), "an external change followed");
    assert!(!chains.explain(DIR, name("z").as_ref(), Some(4)), "an external change of another name preceded");
    assert!(!chains.explain(DIR, None, Some(4)), "another holder changed its attributes before");
    assert!(!chains.explain(FileId { ino: 2, ..DIR }, name("a").as_ref(), Some(4)));
}

#[test]
fn an_external_change_in_between_breaks_the_chain() {
    let chains = chains(&[("a", 1, 2), ("b", 3, 4)]);
    assert!(!chains.explain(DIR, name("a").as_ref(), Some(4)), "a change of a may have led from 2 to 3");
    assert!(chains.explain(DIR, name("b").as_ref(), Some(4)));
}

#[test]
fn both_names_of_a_rename_belong_to_one_change() {
    let chains = chains(&[("a", 1, 2), ("from", 2, 3), ("to", 2, 3), ("b", 3, 4)]);
    for changed in ["a", "from", "to", "b"] {
        assert!(chains.explain(DIR, name(changed).as_ref(), Some(4)), "{changed}");
    }
}

#[test]
fn a_change_without_its_previous_version_is_a_chain_of_its_own() {
    let mut chains = chains(&[("a", 1, 2)]);
    chains.add(Time(0), DIR, name("b").as_ref(), None, Some(4));
    chains.add(Time(0), DIR, name("c").as_ref(), Some(4), Some(5));
    assert!(!chains.explain(DIR, name("a").as_ref(), Some(4)), "the change from 2 to 4 may be external");
    for version in [4, 5] {
        assert!(
            chains.explain(DIR, name("b").as_ref(), Some(version))
                && !chains.explain(DIR, name("a").as_ref(), Some(version))
        );
    }
}

#[test]
fn own_changes_may_be_recorded_out_of_order() {
    let chains = chains(&[("c", 3, 4), ("a", 1, 2), ("d", 4, 5), ("b", 2, 3), ("late", 7, 8)]);
    for changed in ["a", "b", "c", "d"] {
        assert!(chains.explain(DIR, name(changed).as_ref(), Some(5)), "{changed}");
    }
    assert!(
        !chains.explain(DIR, name("d").as_ref(), Some(8))
            && !chains.explain(DIR, name("late").as_ref(), Some(5))
    );
}

#[test]
fn chains_are_bounded_in_length_number_and_age() {
    let mut chains = VersionChains::default();
    for version in 0..=OWN_CHANGES_MAX as u64 {
        let changed = Bytes::from(format!("{version}"));
        chains.add(Time(0), DIR, Some(&changed), Some(version), Some(version + 1));
    }
    assert!(
        !chains.explain(DIR, name("0").as_ref(), Some(2)) && chains.explain(DIR, name("1").as_ref(), Some(2))
    );
    let old = Time(1) + OWN_AGE;
    let last = OWN_CHANGES_MAX as u64 + 1;
    chains.add(old, DIR, name("late").as_ref(), Some(last), Some(last + 1));
    assert!(!chains.explain(DIR, name("1").as_ref(), Some(last + 1)), "too long ago");
    let another = |ino: usize| FileId { ino: ino as u64 + 2, ..DIR };
    for ino in 0..OWN_OBJECTS_MAX {
        chains.add(old, another(ino), None, Some(1), Some(2));
    }
    assert!(chains.0.len() <= OWN_OBJECTS_MAX && chains.explain(another(OWN_OBJECTS_MAX - 1), None, Some(2)));
    for ino in 0..OWN_OBJECTS_MAX {
        chains.add(
            old + OWN_AGE + Duration::from_nanos(1),
            another(ino + OWN_OBJECTS_MAX),
            None,
            Some(1),
            Some(2),
        );
    }
    assert_eq!(chains.0.len(), OWN_OBJECTS_MAX, "the oldest entries were removed first");
}
