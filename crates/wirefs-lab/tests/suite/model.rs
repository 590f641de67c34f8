//! Random operations on mounts, compared with the reference model.

use std::path::{Path, PathBuf};

use wirefs_model::posix::DirectoryExecutor;
use wirefs_model::run_posix;

use crate::site::Site;

/// Seeds 1 and 2 found faults earlier: the attributes of an open removed directory, a path through a removed name, and
/// the access time of a directory that no program had listed.
const SEEDS: [u64; 3] = [1, 2, 3];
/// Operations for each seed.
const OPERATIONS: usize = 2_500;

/// A mount without a feature would skip operations, so all features must be available.
fn check_features(mount: &Path) {
    let features = DirectoryExecutor::open(mount).unwrap().features();
    assert!(
        features.xattrs && features.punch_hole && features.zero_range && features.exchange,
        "{features:?}"
    );
}

/// The second writer of the tree, next to the first mount.
#[derive(Clone, Copy)]
enum SecondWriter {
    None,
    SecondMount,
    ServerPrograms,
}

fn compare_with_model(name: &str, mounts: &[&str], second_writer: SecondWriter, options: &[&str]) {
    let site = Site::unix(name);
    for seed in SEEDS {
        // Each seed starts with an empty export.
        std::fs::remove_dir_all(site.export()).unwrap();
        std::fs::create_dir(site.export()).unwrap();
        site.kill_server();
        site.start_server();
        let mounted: Vec<PathBuf> = mounts.iter().map(|mount| site.mount(mount, options)).collect();
        let export = site.export();
        let second = match second_writer {
            SecondWriter::None => None,
            SecondWriter::SecondMount => Some(mounted[1].as_path()),
            SecondWriter::ServerPrograms => Some(Path::new(&export)),
        };
        let directories: Vec<&Path> = std::iter::once(mounted[0].as_path()).chain(second).collect();
        check_features(directories[0]);
        run_posix(seed, OPERATIONS, &directories).unwrap_or_else(|mismatch| panic!("{mismatch}"));
        mounted.iter().for_each(|mount| site.unmount(mount));
    }
}

#[test]
fn two_strict_mounts_match_the_model() {
    compare_with_model("model-strict", &["a", "b"], SecondWriter::SecondMount, &["--mode", "strict"]);
}

// S-9
#[test]
fn strict_mount_with_server_programs_matches_the_model() {
    compare_with_model("model-outside", &["a"], SecondWriter::ServerPrograms, &["--mode", "strict"]);
}

#[test]
fn mount_with_a_window_matches_the_model() {
    compare_with_model("model-window", &["a"], SecondWriter::None, &["--mode", "window"]);
}

/// Without a second writer: the other mount sees a change only when it is at the server.
#[test]
fn mount_with_leases_and_a_second_mount_matches_the_model() {
    compare_with_model("model-lease", &["a", "b"], SecondWriter::None, &["--mode", "lease"]);
}

/// As the sole client, the mount answers changes before the server has them.
#[test]
fn sole_mount_with_leases_matches_the_model() {
    compare_with_model("model-lone", &["a"], SecondWriter::None, &[]);
}
