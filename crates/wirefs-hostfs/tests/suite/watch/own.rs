//! The server's own changes.

use super::scene::{KINDS, Scene, is_name};
use crate::harness::{FIRST, at, create, path, put, set, write};
use wirefs_hostfs::WatchKind;
use wirefs_op::message::put::PutMode;
use wirefs_op::message::rename::Trename;
use wirefs_op::{Kind, Request, SetStat};
use wirefs_server::ExternalChange;

/// Changes of all types by this process.
fn change_all(scene: &Scene) {
    let world = &scene.world;
    world.put(FIRST, create("made", Kind::File, 0o644, PutMode::NONE)).unwrap();
    world.put(FIRST, create("dir/sub", Kind::Directory, 0o755, PutMode::NONE)).unwrap();
    world.put(FIRST, write(at("file"), 0, b"own")).unwrap();
    world.put(FIRST, set(at("file"), SetStat { mode: Some(0o600), ..SetStat::default() })).unwrap();
    let rename =
        Trename { from: crate::harness::place("made"), to: crate::harness::place("dir/renamed"), flags: 0 };
    world.ask_one(FIRST, Request::Rename(rename)).unwrap();
    world.remove(FIRST, "dir/renamed").unwrap();
}

#[test]
fn own_changes_of_all_threads_are_excluded() {
    for kind in [WatchKind::Filesystem, WatchKind::Directories] {
        let scene = Scene::new(kind, ": >file; mkdir dir");
        scene.watch("dir");
        scene.begin();
        change_all(&scene);
        scene.run("rmdir dir/sub");
        scene.begin();
        std::thread::scope(|scope| {
            scope.spawn(|| change_all(&scene));
        });
        assert_eq!(scene.since_begin(), [], "{kind:?}");
    }
}

#[test]
fn an_external_change_is_reported_beside_own_ones_of_the_same_file() {
    for kind in KINDS {
        let scene = Scene::new(kind, ": >file");
        scene.begin();
        let own = scene.world.put(FIRST, write(at("file"), 0, b"own")).unwrap().stat.unwrap();
        scene.run("printf theirs >>file");
        scene.world.put(FIRST, put(at("file"), PutMode::MORE.and(PutMode::WRITE))).unwrap();
        let report = scene.since_begin();
        let is_theirs = |report: &ExternalChange| matches!(report, ExternalChange::Changed { id, name: None, version } if *id == own.id && *version != Some(own.version));
        assert!(report.iter().any(is_theirs), "{report:?}");
    }
}

#[test]
fn own_changes_are_reported_with_the_version_after_them() {
    let scene = Scene::new(WatchKind::DirectoriesAndOwn, ": >file; mkdir dir");
    scene.watch("dir");
    scene.begin();
    let made = scene.world.put(FIRST, create("dir/made", Kind::File, 0o644, PutMode::NONE)).unwrap();
    let wrote = scene.world.put(FIRST, write(at("file"), 0, b"own")).unwrap().stat.unwrap();
    let dir = scene.stat("dir");
    let report = scene.since_begin();
    let made = made.stat.unwrap();
    let expected = [
        ExternalChange::Changed { id: made.id, name: None, version: Some(made.version) },
        ExternalChange::Changed {
            id: dir.id,
            name: Some(b"made".to_vec().into()),
            version: Some(dir.version),
        },
        ExternalChange::Changed { id: wrote.id, name: None, version: Some(wrote.version) },
    ];
    for expected in &expected {
        assert!(report.contains(expected), "{expected:?} in {report:?}");
    }
    assert!(report.iter().all(|report| expected.contains(report)), "{report:?}");
    assert_eq!(scene.world.stat(FIRST, wirefs_op::message::target::Target::at(path("file"))).unwrap(), wrote);
}

// S-52
#[test]
fn settle_waits_for_reports_of_all_earlier_changes() {
    for kind in KINDS {
        let scene = Scene::new(kind, ": >file; mkdir dir");
        scene.watch("dir");
        let dir = scene.id("dir");
        scene.begin();
        for round in 0..20 {
            let name = format!("made-{round}");
            scene.run(&format!("mv file dir/{name}; mv dir/{name} file"));
            assert!(scene.watcher().settle(), "{kind:?}");
            let is_reported = scene.reports.all().iter().any(|outside| is_name(outside, dir, &name));
            assert!(is_reported, "{kind:?}: {name}");
        }
    }
}
