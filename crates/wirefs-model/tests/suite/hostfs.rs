//! The exported host directory against the model, request by request.

use crate::scratch::Scratch;
use crate::seeds;
use std::path::Path;
use wirefs_hostfs::{HostOptions, HostTree, Notice, WatchKind};
use wirefs_model::{run_op, run_touches};
use wirefs_server::Tree;

fn agrees_in(place: &Path, seed: u64, requests: usize) {
    let scratch = Scratch::within(place);
    let tree = HostTree::open(scratch.path(), HostOptions::default()).unwrap();
    if let Err(mismatch) = run_op(seed, requests, &tree) {
        panic!("{mismatch}");
    }
}

// S-31
#[test]
fn a_host_directory_answers_as_the_model_does() {
    for seed in seeds(4) {
        agrees_in(&std::env::temp_dir(), seed, 1500);
    }
}

#[test]
fn a_host_directory_in_memory_answers_as_the_model_does() {
    for seed in seeds(8) {
        agrees_in(Path::new("/dev/shm"), seed, 1500);
    }
}

#[test]
fn a_host_directory_touches_what_it_changes() {
    for seed in seeds(6) {
        let scratch = Scratch::within(Path::new("/dev/shm"));
        let options = HostOptions { notice: Notice::Exclusive, ..HostOptions::default() };
        let tree = HostTree::open(scratch.path(), options).unwrap();
        if let Err(mismatch) = run_touches(seed, 1000, &tree) {
            panic!("{mismatch}");
        }
    }
}

#[test]
fn a_host_directory_that_is_watched_answers_as_the_model_does() {
    for kind in [WatchKind::Directories, WatchKind::DirectoriesAndOwn, WatchKind::Filesystem] {
        for seed in seeds(2) {
            let scratch = Scratch::within(Path::new("/dev/shm"));
            let options = HostOptions { notice: Notice::Watched(kind), ..HostOptions::default() };
            let tree = HostTree::open(scratch.path(), options).unwrap();
            tree.observe(Box::new(drop));
            assert!(tree.leases().is_some());
            if let Err(mismatch) = run_op(seed, 1500, &tree) {
                panic!("{kind:?}: {mismatch}");
            }
        }
    }
}
