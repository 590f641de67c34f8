//! The exported host directory compared with the model, request by request.

use crate::scratch::Scratch;
use crate::seeds;
use std::path::Path;
use wirefs_hostfs::{DetectionMode, HostOptions, HostTree, WatchKind};
use wirefs_model::{run_op, run_touches};
use wirefs_server::Tree;

fn compare_in(parent: &Path, seed: u64, requests: usize) {
    let scratch = Scratch::within(parent);
    let tree = HostTree::open(scratch.path(), HostOptions::all_rights()).unwrap();
    if let Err(mismatch) = run_op(seed, requests, &tree) {
        panic!("{mismatch}");
    }
}

// S-2
#[test]
fn host_directory_matches_the_model() {
    for seed in seeds(4) {
        compare_in(&std::env::temp_dir(), seed, 1500);
    }
}

#[test]
fn host_directory_on_tmpfs_matches_the_model() {
    for seed in seeds(8) {
        compare_in(Path::new("/dev/shm"), seed, 1500);
    }
}

#[test]
fn host_directory_announces_its_changes() {
    for seed in seeds(6) {
        let scratch = Scratch::within(Path::new("/dev/shm"));
        let options = HostOptions { detection: DetectionMode::Exclusive, ..HostOptions::all_rights() };
        let tree = HostTree::open(scratch.path(), options).unwrap();
        if let Err(mismatch) = run_touches(seed, 1000, &tree) {
            panic!("{mismatch}");
        }
    }
}

#[test]
fn watched_host_directory_matches_the_model() {
    for kind in [WatchKind::Directories, WatchKind::DirectoriesAndOwn, WatchKind::Filesystem] {
        for seed in seeds(2) {
            let scratch = Scratch::within(Path::new("/dev/shm"));
            let options =
                HostOptions { detection: DetectionMode::Watched(kind), ..HostOptions::all_rights() };
            let tree = HostTree::open(scratch.path(), options).unwrap();
            tree.observe(Box::new(drop));
            assert!(tree.leases().is_some());
            if let Err(mismatch) = run_op(seed, 1500, &tree) {
                panic!("{kind:?}: {mismatch}");
            }
        }
    }
}
