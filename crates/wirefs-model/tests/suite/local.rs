//! The model against the local kernel: it must do what a plain directory does.

use crate::scratch::Scratch;
use crate::seeds;
use proptest::prelude::*;
use std::path::Path;
use wirefs_model::posix::DirectoryWorld;
use wirefs_model::{Operation, run_operations, run_posix};

/// A file system in memory, where it is mounted on Linux.
const MEMORY: &str = "/dev/shm";

fn agrees_in(place: &Path, seed: u64, operations: usize) {
    let scratch = Scratch::within(place);
    if let Err(mismatch) = run_posix(seed, operations, &[scratch.path()]) {
        panic!("{mismatch}");
    }
}

// S-31
#[test]
fn the_model_does_what_a_local_directory_does() {
    for seed in seeds(4) {
        agrees_in(&std::env::temp_dir(), seed, 2000);
    }
}

#[test]
fn the_model_does_what_a_directory_in_memory_does() {
    for seed in seeds(12) {
        agrees_in(Path::new(MEMORY), seed, 2500);
    }
}

#[test]
fn two_mounts_of_one_directory_are_one_world() {
    for seed in seeds(2) {
        let scratch = Scratch::within(Path::new(MEMORY));
        if let Err(mismatch) = run_posix(seed, 2000, &[scratch.path(), scratch.path()]) {
            panic!("{mismatch}");
        }
    }
}

#[test]
fn a_local_directory_can_do_all_that_is_compared() {
    let scratch = Scratch::within(&std::env::temp_dir());
    let abilities = DirectoryWorld::open(scratch.path()).unwrap().abilities();
    assert!(abilities.xattrs && abilities.punches && abilities.exchanges, "{abilities:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn short_sequences_agree_and_would_shrink(operations in Operation::sequences(80)) {
        let scratch = Scratch::within(Path::new(MEMORY));
        if let Err(mismatch) = run_operations(&operations, &[scratch.path()]) {
            return Err(TestCaseError::fail(mismatch.to_string()));
        }
    }
}
