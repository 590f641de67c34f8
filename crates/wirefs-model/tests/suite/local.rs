//! The model compared with a plain directory of the local kernel.

use crate::scratch::Scratch;
use crate::seeds;
use proptest::prelude::*;
use std::path::Path;
use wirefs_model::posix::DirectoryExecutor;
use wirefs_model::{Operation, run_operations, run_posix};

/// A file system in memory that every Linux mounts.
const MEMORY: &str = "/dev/shm";

fn compare_in(parent: &Path, seed: u64, operations: usize) {
    let scratch = Scratch::within(parent);
    if let Err(mismatch) = run_posix(seed, operations, &[scratch.path()]) {
        panic!("{mismatch}");
    }
}

// S-2
#[test]
fn model_matches_a_local_directory() {
    for seed in seeds(4) {
        compare_in(&std::env::temp_dir(), seed, 2000);
    }
}

#[test]
fn model_matches_a_tmpfs_directory() {
    for seed in seeds(12) {
        compare_in(Path::new(MEMORY), seed, 2500);
    }
}

#[test]
fn model_matches_two_paths_of_one_directory() {
    for seed in seeds(2) {
        let scratch = Scratch::within(Path::new(MEMORY));
        if let Err(mismatch) = run_posix(seed, 2000, &[scratch.path(), scratch.path()]) {
            panic!("{mismatch}");
        }
    }
}

#[test]
fn local_directory_has_all_compared_features() {
    let scratch = Scratch::within(&std::env::temp_dir());
    let features = DirectoryExecutor::open(scratch.path()).unwrap().features();
    assert!(features.xattrs && features.punch_hole && features.exchange, "{features:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn short_random_sequences_match(operations in Operation::sequences(80)) {
        let scratch = Scratch::within(Path::new(MEMORY));
        if let Err(mismatch) = run_operations(&operations, &[scratch.path()]) {
            return Err(TestCaseError::fail(mismatch.to_string()));
        }
    }
}
