//! Tests of the lease set.

use super::LeaseSet;
use std::collections::BTreeSet;
use wirefs_op::FileId;
use wirefs_virtual::Dice;

fn id(fs: u32, ino: u64, generation: u32) -> FileId {
    FileId { fs, ino, generation }
}

#[test]
fn ids_that_differ_in_one_part_only_are_different_objects() {
    let ids =
        [id(0, 0, 0), id(1, 0, 0), id(0, 1, 0), id(0, 0, 1), id(0, 1 << 32, 0), id(0, u64::MAX, u32::MAX)];
    for member in ids {
        let mut set = LeaseSet::default();
        assert!(set.insert(member) && !set.insert(member));
        for other in ids {
            assert_eq!(set.contains(other), other == member, "{other:?} in a set of {member:?}");
        }
        assert!(set.remove(member) && !set.remove(member));
        assert!(set.is_empty() && set.bytes() == 0, "{member:?}");
    }
}

#[test]
fn the_set_behaves_like_an_ordered_set() {
    let mut dice = Dice::new(1);
    let mut set = LeaseSet::default();
    let mut model = BTreeSet::new();
    for step in 0..60_000u64 {
        // The set grows, shrinks and grows again; ids are few enough to be reused.
        let growing = step / 10_000 % 2 == 0;
        let id = id(dice.below(2) as u32, dice.below(3000), dice.below(3) as u32);
        if dice.below(10) < if growing { 8 } else { 2 } {
            assert_eq!(set.insert(id), model.insert(id));
        } else {
            assert_eq!(set.remove(id), model.remove(&id));
        }
        assert_eq!(set.len(), model.len());
        if step % 5_000 == 0 {
            for fs in 0..2 {
                for ino in 0..3000 {
                    let id = FileId { fs, ino, generation: 1 };
                    assert_eq!(set.contains(id), model.contains(&id), "{id:?} at step {step}");
                }
            }
        }
    }
}

#[test]
fn an_object_takes_about_sixteen_bytes() {
    let mut set = LeaseSet::default();
    let mut most = 0.0f64;
    for ino in 1..=1_000_000 {
        set.insert(id(0, ino, 7));
        if ino > 10_000 {
            most = most.max(set.bytes() as f64 / set.len() as f64);
        }
    }
    assert!(most < 19.0, "{most} bytes for each object");
    for ino in 1..=999_990 {
        set.remove(id(0, ino, 7));
    }
    assert!(set.bytes() < 6000, "{} bytes for {} objects", set.bytes(), set.len());
}
