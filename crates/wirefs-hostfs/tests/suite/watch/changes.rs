//! Each type of change with each kind of watcher.

use super::scene::{KINDS, Scene, held, is_name};
use rustix::fd::AsFd;
use rustix::process::{Resource, Rlimit};
use std::time::Instant;
use wirefs_hostfs::WatchKind;
use wirefs_server::ExternalChange;

#[test]
fn every_change_of_a_file_is_reported() {
    let scripts = [
        "printf more >>file",
        ": >file",
        "truncate -s 100000 file",
        "chmod 600 file",
        "chown 5:6 file",
        "touch -d 2001-02-03 file",
        "touch -a file",
        "ln file other-name",
        "rm other-name",
        "dd if=/dev/zero of=file bs=10 seek=3 count=1 conv=notrunc 2>dev-null",
        "fallocate -l 4096 file",
    ];
    for kind in KINDS {
        let scene = Scene::new(kind, ": >file");
        scene.watch("file");
        for script in scripts {
            scene.begin();
            scene.run(script);
            scene.expect_object(scene.id("file"), script);
        }
        scene.begin();
        scene.act("set an attribute", &["file"]);
        scene.expect_object(scene.id("file"), "an extended attribute");
    }
}

#[test]
fn created_objects_are_reported_by_name() {
    let scripts =
        ["printf a >new", "mkdir new", "ln -s nowhere new", "mkfifo new", "mknod new c 1 3", "ln file new"];
    for kind in KINDS {
        let scene = Scene::new(kind, ": >file");
        for script in scripts {
            scene.begin();
            scene.run(script);
            scene.expect_name(scene.id(""), "new");
            scene.begin();
            scene.run("rm -r new");
            scene.expect_name(scene.id(""), "new");
        }
    }
}

#[test]
fn moves_within_the_tree_are_reported_at_both_names() {
    for kind in KINDS {
        let scene = Scene::new(kind, "mkdir from to; : >from/file");
        for dir in ["from", "to"] {
            scene.watch(dir);
        }
        let (from, to, file) = (scene.id("from"), scene.id("to"), scene.id("from/file"));
        scene.run("mv from/file to/moved");
        scene.expect_name(from, "file");
        scene.expect_name(to, "moved");
        scene.expect_object(file, "what moved, since its change time did");
    }
}

#[test]
fn moves_into_and_out_of_the_tree_are_reported() {
    for kind in KINDS {
        let scene = Scene::new(kind, "mkdir ../beside; : >leaves; : >../beside/comes");
        let leaves = scene.id("leaves");
        scene.run("mv leaves ../beside/; mv ../beside/comes .");
        scene.expect_name(scene.id(""), "leaves");
        scene.expect_name(scene.id(""), "comes");
        scene.expect_object(scene.id("comes"), "what came");
        match kind {
            WatchKind::Filesystem => scene.expect_object(leaves, "what left"),
            WatchKind::Directories | WatchKind::DirectoriesAndOwn | WatchKind::Nothing => {}
        }
    }
}

#[test]
fn a_replaced_file_is_reported_by_name_and_the_new_one_by_id() {
    for kind in KINDS {
        let scene = Scene::new(kind, "printf old >file; printf new >next");
        let (old, next) = (scene.id("file"), scene.id("next"));
        // An open file still exists.
        let _kept = held(&scene.world.host("file"));
        scene.watch("file");
        scene.run("mv next file");
        for name in ["next", "file"] {
            scene.expect_name(scene.id(""), name);
        }
        scene.expect_object(next, "what replaced it");
        scene.expect_object(old, "what was replaced, and still is open");
    }
}

#[test]
fn an_exchange_is_reported_for_both_names() {
    for kind in KINDS {
        let scene = Scene::new(kind, "printf a >one; mkdir two");
        let ids = ["one", "two"].map(|name| scene.id(name));
        scene.act("exchange", &["one", "two"]);
        for (name, id) in ["one", "two"].into_iter().zip(ids) {
            scene.expect_name(scene.id(""), name);
            scene.expect_object(id, name);
        }
    }
}

#[test]
fn a_write_through_another_name_is_reported() {
    for kind in KINDS {
        let scene = Scene::new(kind, "mkdir unwatched; : >name; ln name unwatched/other");
        assert_eq!(scene.stat("name").nlink, 2);
        scene.watch("name");
        scene.run("printf more >>unwatched/other");
        scene.expect_object(scene.id("name"), "written through a name in a directory that is not watched");
    }
}

#[test]
fn changes_below_a_renamed_directory_are_reported() {
    for kind in KINDS {
        let scene = Scene::new(kind, "mkdir dir dir/sub; : >dir/sub/file");
        for dir in ["dir", "dir/sub"] {
            scene.watch(dir);
        }
        let (dir, sub) = (scene.id("dir"), scene.id("dir/sub"));
        scene.run("mv dir renamed");
        for name in ["dir", "renamed"] {
            scene.expect_name(scene.id(""), name);
        }
        scene.expect_object(dir, "the directory itself");
        assert!(
            !scene
                .reports
                .all()
                .iter()
                .any(|report| matches!(report, ExternalChange::Changed { id, .. } if *id == sub))
        );
        scene.begin();
        scene.run("printf more >>renamed/sub/file; : >renamed/sub/new; chmod 700 renamed/sub");
        scene.expect_object(scene.id("renamed/sub/file"), "a file below");
        scene.expect_name(sub, "new");
        scene.expect_object(sub, "attributes below");
    }
}

#[test]
fn a_removed_directory_is_reported_by_name_and_while_open_by_id() {
    for kind in KINDS {
        let scene = Scene::new(kind, "mkdir held other");
        scene.watch("held");
        let kept = held(&scene.world.host("held"));
        let id = scene.id("held");
        scene.run("rmdir held");
        scene.expect_name(scene.id(""), "held");
        scene.expect_object(id, "held by a descriptor");
        if kind != WatchKind::Filesystem {
            assert!(!scene.watcher().watch(kept.as_fd(), id), "it has no name any more");
        }
        // A directory that is replaced by a rename is removed as well.
        scene.run("mkdir victim");
        scene.watch("victim");
        let victim = scene.id("victim");
        let _kept = held(&scene.world.host("victim"));
        scene.begin();
        scene.run("mv -T other victim");
        scene.expect_name(scene.id(""), "victim");
        if kind != WatchKind::Filesystem {
            scene.expect_object(victim, "replaced");
        }
    }
}

#[test]
fn a_symlink_is_reported_and_not_its_target() {
    for kind in KINDS {
        let scene = Scene::new(kind, "mkdir elsewhere; : >elsewhere/target; ln -s elsewhere/target link");
        let link = scene.id("link");
        scene.begin();
        scene.run("printf a >link");
        let report = scene.since_begin();
        assert!(
            !report.iter().any(|report| matches!(report, ExternalChange::Changed { id, .. } if *id == link))
        );
        scene.run("touch -h link");
        scene.expect_object(link, "the link's own times");
    }
}

#[test]
fn a_burst_makes_few_reports_including_the_last_change() {
    const WRITES: usize = 50_000;
    for kind in KINDS {
        let scene = Scene::new(kind, ": >file");
        scene.begin();
        let start = Instant::now();
        scene.run(&format!("dd if=/dev/zero of=file bs=1 count={WRITES} 2>dd-says"));
        let id = scene.id("file");
        let stat = scene.stat("file");
        let report = scene.since_begin();
        // Rounds are 4 ms apart, however slow this machine is.
        let rounds = start.elapsed().as_millis() as usize / 4 + 2;
        let of_file: Vec<_> = report
            .iter()
            .filter(
                |report| matches!(report, ExternalChange::Changed { id: reported, name: None, .. } if *reported == id),
            )
            .collect();
        assert!((1..=rounds).contains(&of_file.len()), "{} of {rounds} rounds", of_file.len());
        let version = (kind == WatchKind::DirectoriesAndOwn).then_some(stat.version);
        let last = ExternalChange::Changed { id, name: None, version };
        assert_eq!(of_file.last(), Some(&&last));
        assert!(!report.contains(&ExternalChange::Lost));
    }
}

#[test]
fn many_directories_are_watched_at_once() {
    const DIRS: usize = 400;
    // As in a server: each watch takes a descriptor.
    let limit = rustix::process::getrlimit(Resource::Nofile);
    rustix::process::setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    for kind in KINDS {
        let scene = Scene::new(kind, &format!("mkdir $(seq -f d%g 1 {DIRS})"));
        let ids: Vec<_> = (1..=DIRS)
            .map(|number| {
                scene.watch(&format!("d{number}"));
                scene.id(&format!("d{number}"))
            })
            .collect();
        scene.run(&format!("for d in $(seq -f d%g 1 {DIRS}); do : >$d/new; done"));
        for id in ids {
            scene.expect_name(id, "new");
        }
    }
}

#[test]
fn a_directory_without_its_watch_is_not_reported() {
    for kind in [WatchKind::Directories, WatchKind::DirectoriesAndOwn] {
        let scene = Scene::new(kind, "mkdir dir");
        scene.watch("dir");
        let dir = scene.id("dir");
        scene.run(": >dir/one");
        scene.expect_name(dir, "one");
        scene.watcher().unwatch(dir);
        scene.begin();
        scene.run(": >dir/two");
        let report = scene.since_begin();
        assert!(!report.iter().any(|report| is_name(report, dir, "two")), "{report:?}");
        scene.watch("dir");
        scene.run(": >dir/three");
        scene.expect_name(dir, "three");
    }
}
