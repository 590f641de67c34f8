//! Other file systems, below the export and as the export.

use super::scene::{Heard, KINDS, Scene, watch_root};
use crate::full_disk::Tmpfs;
use crate::harness::{ROUNDS_MAX, need_root};
use rustix::mount::{MountFlags, UnmountFlags};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use wirefs_hostfs::WatchKind;
use wirefs_server::ExternalChange;

#[test]
fn what_is_mounted_below_is_watched_when_asked_for_and_free_when_not() {
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
        scene.hears_object(file, "a file on the other file system");
        scene.hears_name(dir, "new");
        scene.hears_name(below, "new");
        scene.watcher().unwatch(below);
        scene.begin();
        scene.run("printf a >>below/dir/file");
        scene.hears_object(file, "a directory of it is watched still");
        scene.watcher().unwatch(dir);
        scene.settle();
        unmount(&place);
        drop(mount);
        // Again, at the same place, maybe under the same numbers.
        let _mount = Tmpfs::mount(&place, 1 << 20);
        scene.watch("below");
        scene.run(": >below/again");
        scene.hears_name(scene.id("below"), "again");
        scene.watcher().unwatch(scene.id("below"));
    }
}

/// Unmounts what nobody holds; a child that another test just started holds copies of all descriptors for a moment.
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
fn a_file_on_a_file_system_that_was_not_met_is_watched_where_it_can_be() {
    for kind in KINDS {
        let scene = Scene::new(kind, "mkdir below");
        let _mount = Tmpfs::mount(&scene.world.host("below"), 1 << 20);
        scene.run(": >below/file");
        assert_eq!(scene.try_watch("below/file"), kind != WatchKind::Filesystem);
        scene.watch("below");
        scene.watch("below/file");
        scene.run("printf a >>below/file");
        scene.hears_object(scene.id("below/file"), "file");
        for path in ["below", "below/file"] {
            scene.watcher().unwatch(scene.id(path));
        }
    }
}

/// The kernel's own, which changes without a word; gone afterwards.
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
fn a_file_system_that_does_not_tell_of_its_changes_is_not_watched() {
    need_root();
    for kind in KINDS {
        let scene = Scene::new(kind, "mkdir proc");
        let _mount = Proc::mount(scene.world.host("proc"));
        assert!(!scene.try_watch("proc"));
        let watcher = watch_root(Path::new("/proc"), kind, &Arc::new(Heard::default()));
        assert_eq!(watcher.kind(), WatchKind::Nothing);
    }
}

#[test]
fn what_is_mounted_and_unmounted_below_makes_all_that_was_known_doubtful() {
    for kind in KINDS {
        let scene = Scene::new(kind, "mkdir below");
        let is_lost = |outside: &ExternalChange| *outside == ExternalChange::Lost;
        let mount = Tmpfs::mount(&scene.world.host("below"), 1 << 20);
        scene.heard.wait("mounted", is_lost);
        scene.begin();
        drop(mount);
        scene.heard.wait("unmounted", is_lost);
    }
}
