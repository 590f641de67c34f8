//! The model against the local kernel: it must do what a plain directory does. Needs root.

use crate::scratch::Scratch;
use std::path::Path;
use wirefs_model::run_posix;

fn agrees_with(place: &Path, seed: u64, operations: usize) {
    let scratch = Scratch::within(place);
    if let Err(mismatch) = run_posix(seed, operations, &[scratch.path()]) {
        panic!("{mismatch}");
    }
}

#[test]
fn the_model_does_what_a_local_directory_does() {
    let seeds: u64 = std::env::var("SEEDS").map_or(8, |n| n.parse().unwrap());
    for seed in 0..seeds {
        agrees_with(&std::env::temp_dir(), seed, 2500);
    }
}
#[test]
fn the_model_does_what_a_tmpfs_directory_does() {
    let seeds: u64 = std::env::var("SEEDS").map_or(8, |n| n.parse().unwrap());
    for seed in 0..seeds {
        agrees_with(Path::new("/dev/shm"), seed, 2500);
    }
}
