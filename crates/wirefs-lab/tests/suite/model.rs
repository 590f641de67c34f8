//! Random operations: mounts beside the reference model.

use std::path::{Path, PathBuf};

use wirefs_model::posix::DirectoryWorld;
use wirefs_model::run_posix;

use crate::site::Site;

/// Seeds 1 and 2 once found something: the attributes of a removed directory that is open, a path by a name that had
/// gone, the access time of a directory that no program had listed.
const SEEDS: [u64; 3] = [1, 2, 3];
/// Operations for each seed.
const OPERATIONS: usize = 2_500;

/// What is proved on a mount that lacks an ability is less; so each must be there.
fn check_abilities(mount: &Path) {
    let here = DirectoryWorld::open(mount).unwrap().abilities();
    assert!(here.xattrs && here.punches && here.zeroes && here.exchanges, "{here:?}");
}

/// Who changes the tree by turns, beside the first mount.
#[derive(Clone, Copy)]
enum Beside {
    Nobody,
    SecondMount,
    ProgramsAtTheServer,
}

fn agrees(name: &str, mounts: &[&str], beside: Beside, options: &[&str]) {
    let site = Site::unix(name);
    for seed in SEEDS {
        // Each seed begins in an empty export.
        std::fs::remove_dir_all(site.export()).unwrap();
        std::fs::create_dir(site.export()).unwrap();
        site.kill_server();
        site.start_server();
        let mounted: Vec<PathBuf> = mounts.iter().map(|mount| site.mount(mount, options)).collect();
        let export = site.export();
        let second = match beside {
            Beside::Nobody => None,
            Beside::SecondMount => Some(mounted[1].as_path()),
            Beside::ProgramsAtTheServer => Some(Path::new(&export)),
        };
        let worlds: Vec<&Path> = std::iter::once(mounted[0].as_path()).chain(second).collect();
        check_abilities(worlds[0]);
        run_posix(seed, OPERATIONS, &worlds).unwrap_or_else(|mismatch| panic!("{mismatch}"));
        mounted.iter().for_each(|mount| site.unmount(mount));
    }
}

#[test]
fn two_strict_mounts_of_one_export_do_as_the_model() {
    agrees("model-strict", &["a", "b"], Beside::SecondMount, &["--mode", "strict"]);
}

// S-3
#[test]
fn a_strict_mount_beside_programs_at_the_server_does_as_the_model() {
    agrees("model-outside", &["a"], Beside::ProgramsAtTheServer, &["--mode", "strict"]);
}

#[test]
fn a_mount_with_a_window_does_as_the_model() {
    agrees("model-window", &["a"], Beside::Nobody, &["--mode", "window"]);
}

/// What one writes the other sees when it is at the server, so the second mount looks on.
#[test]
fn a_mount_with_leases_beside_another_one_does_as_the_model() {
    agrees("model-lease", &["a", "b"], Beside::Nobody, &["--mode", "lease"]);
}

/// Alone, it answers before the server has the changes.
#[test]
fn a_lone_mount_with_leases_does_as_the_model() {
    agrees("model-lone", &["a"], Beside::Nobody, &[]);
}
