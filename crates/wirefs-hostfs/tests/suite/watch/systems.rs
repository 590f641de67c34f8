//! Other file systems, below the export and as the export.

use super::scene::{KINDS, Reports, Scene, watch_root};
use crate::full_disk::Tmpfs;
use crate::harness::{ROUNDS_MAX, need_root};
use rustix::mount::{MountFlags, UnmountFlags};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use wirefs_hostfs::WatchKind;
use wirefs_server::ExternalChange;

#[test]
fn mounts_below_are_pinned_only_while_they_are_watched() {
    for kind in KINDS {
        let scene = Scene::new(kind, "mkdir below");
        let place = scene.world.host("below");
        let mount = Tmpfs::mount(&place, 1 << 20);
        scene.run("mkdir below/dir; : >below/dir/file");
        for path in ["below", "below/dir"] {
            scene.watch(path);
        }
        let (below, dir, file) = (scene.id("below"), scene.id("below/dir"), scene.id("below/dir/file"));
        assert_ne!(below.fs, 0);
        scene.run("printf a >>below/dir/file; : >below/dir/new; : >below/new");
        scene.expect_object(file, "a file on the other file system");
        scene.expect_name(dir, "new");
        scene.expect_name(below, "new");
        scene.watcher().unwatch(below);
        scene.begin();
        scene.run("printf a >>below/dir/file");
        scene.expect_object(file, "a directory of it is watched still");
        scene.watcher().unwatch(dir);
        scene.settle();
        unmount(&place);
        drop(mount);
        // Once more at the same mount point, maybe with the same numbers.
        let _mount = Tmpfs::mount(&place, 1 << 20);
        scene.watch("below");
        scene.run(": >below/again");
        scene.expect_name(scene.id("below"), "again");
        scene.watcher().unwatch(scene.id("below"));
    }
}

/// Unmounts a file system. A child that another test has just started may hold copies of all descriptors for a
/// moment.
fn unmount(place: &Path) {
    let is_busy = || rustix::mount::unmount(place, UnmountFlags::empty()) == Err(rustix::io::Errno::BUSY);
    for _ in 0..ROUNDS_MAX {
        if !is_busy() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    panic!("still held");
}

#[test]
fn a_file_on_an_unknown_file_system_is_watched_if_possible() {
    for kind in KINDS {
        let scene = Scene::new(kind, "mkdir below");
        let _mount = Tmpfs::mount(&scene.world.host("below"), 1 << 20);
        scene.run(": >below/file");
        assert_eq!(scene.try_watch("below/file"), kind != WatchKind::Filesystem);
        scene.watch("below");
        scene.watch("below/file");
        scene.run("printf a >>below/file");
        scene.expect_object(scene.id("below/file"), "file");
        for path in ["below", "below/file"] {
            scene.watcher().unwatch(scene.id(path));
        }
    }
}

/// A mounted procfs, which changes without events; unmounted afterwards.
struct Proc(PathBuf);

impl Proc {
    fn mount(dir: PathBuf) -> Proc {
        rustix::mount::mount("proc", &dir, "proc", MountFlags::empty(), None).unwrap();
        Proc(dir)
    }
}

impl Drop for Proc {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, UnmountFlags::DETACH);
    }
}

#[test]
fn a_file_system_without_events_is_not_watched() {
    need_root();
    for kind in KINDS {
        let scene = Scene::new(kind, "mkdir proc");
        let _mount = Proc::mount(scene.world.host("proc"));
        assert!(!scene.try_watch("proc"));
        let watcher = watch_root(Path::new("/proc"), kind, &Arc::new(Reports::default()));
        assert_eq!(watcher.kind(), WatchKind::Nothing);
    }
}

#[test]
fn mounts_and_unmounts_below_are_reported_as_lost() {
    for kind in KINDS {
        let scene = Scene::new(kind, "mkdir below");
        let is_lost = |outside: &ExternalChange| *outside == ExternalChange::Lost;
        let mount = Tmpfs::mount(&scene.world.host("below"), 1 << 20);
        scene.reports.wait("mounted", is_lost);
        scene.begin();
        drop(mount);
        scene.reports.wait("unmounted", is_lost);
    }
}
