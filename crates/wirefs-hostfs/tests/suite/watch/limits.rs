//! Limits of queues, watches and descriptors; the end of a watcher.

use super::scene::{KINDS, Reports, Scene, act, held, queue_max, run, watch_root};
use crate::harness::{Scratch, need_root};
use rustix::fd::AsFd;
use rustix::thread::CapabilitySet;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wirefs_hostfs::{DetectionMode, HostOptions, HostTree, Shortage, WatchKind, Watcher};
use wirefs_op::message::version::BootId;
use wirefs_op::{FileId, TreePath};
use wirefs_server::{ExternalChange, SessionKey, Tree};

#[test]
fn a_full_queue_is_reported_as_lost_and_watching_continues() {
    for kind in KINDS {
        let scene = Scene::new(kind, ": >file");
        let gate = scene.reports.gate.lock().unwrap();
        scene.run("printf a >>file");
        scene.reports.wait_until_held();
        let names = queue_max(kind) + 1000;
        scene.run(&format!("seq -f f%.0f {names} | xargs touch"));
        drop(gate);
        scene.reports.wait("lost", |outside| *outside == ExternalChange::Lost);
        scene.begin();
        scene.run("printf b >>file");
        scene.expect_object(scene.id("file"), "after the loss");
    }
}

/// Events are read during the reports, even while a program makes many changes in or beside the export.
#[test]
fn slow_reports_do_not_overflow_the_queue() {
    let kind = WatchKind::Filesystem;
    let scene = Scene::new(kind, "mkdir beside");
    scene.reports.each_takes(Duration::from_millis(1));
    let names = 2 * queue_max(kind) + 10_000;
    let batch = queue_max(kind) / 4;
    for first in (1..=names).step_by(batch) {
        let last = names.min(first + batch - 1);
        scene.run(&format!("cd beside; seq -f f%.0f {first} {last} | xargs touch"));
        // A busy machine may run the watcher's thread late.
        scene.wait_until_read();
    }
    let reported = scene.reports.all().len();
    assert!(reported < names, "{reported} reports before all was read");
    scene.reports.each_takes(Duration::ZERO);
    scene.settle();
    let all = scene.reports.all();
    assert!(!all.contains(&ExternalChange::Lost), "{} reports", all.len());
    assert!(all.len() > names, "{} reports", all.len());
}

/// While the inode number of a removed object is reused, the kernel cannot resolve its handle. Seen on ext4.
#[test]
fn objects_that_are_removed_at_once_cause_no_loss() {
    need_root();
    let scratch = Scratch::new();
    let [dir, beside] = ["dir", "beside"].map(|name| scratch.path().join(name));
    std::fs::create_dir(&dir).unwrap();
    std::fs::create_dir(&beside).unwrap();
    let reports = Arc::new(Reports::default());
    let watcher = watch_root(&dir, WatchKind::Filesystem, &reports);
    assert_eq!(watcher.kind(), WatchKind::Filesystem, "{}", scratch.path().display());
    act("make and remove", &[beside]);
    run(&dir, ": >by-another");
    reports.wait(
        "the last one",
        |outside| matches!(outside, ExternalChange::Changed { name: Some(name), .. } if name.as_ref() == b"by-another"),
    );
    assert!(!reports.all().contains(&ExternalChange::Lost), "{} reports", reports.all().len());
}

#[test]
fn dropping_the_watcher_ends_its_thread() {
    for kind in KINDS {
        let mut scene = Scene::new(kind, ": >file");
        assert!(Arc::strong_count(&scene.reports) > 1);
        drop(scene.watcher.take());
        assert_eq!(Arc::strong_count(&scene.reports), 1, "the reporting thread has ended");
    }
}

#[test]
fn a_watcher_that_failed_watches_nothing() {
    for kind in KINDS {
        let scene = Scene::new(kind, ": >file");
        let reports = Arc::new(Reports::default());
        let report = Arc::clone(&reports);
        let root = held(&scene.world.host(""));
        let failing = Watcher::start(root.as_fd(), BootId::default(), kind, move |outside| {
            report.add(outside);
            panic!("on purpose");
        });
        assert!(failing.watch(root.as_fd(), scene.id("")));
        scene.run(": >new");
        while failing.kind() != WatchKind::Nothing {
            std::thread::yield_now();
        }
        assert!(!failing.watch(root.as_fd(), scene.id("")));
        assert_eq!(reports.all().len(), 1);
    }
}

/// The ids of the objects in a directory.
fn ids(dir: &std::path::Path, names: &[&str]) -> Vec<FileId> {
    let tree = HostTree::open(dir, HostOptions::all_rights()).unwrap();
    let id = |name: &&str| {
        let path = TreePath::from_bytes(bytes::Bytes::copy_from_slice(name.as_bytes())).unwrap();
        tree.attach(SessionKey(1), &path).unwrap().root.id
    };
    names.iter().map(id).collect()
}

#[test]
fn an_ordinary_user_watches_the_directories_that_it_may_read() {
    crate::harness::need_root();
    let scratch = Scratch::new();
    for name in ["open", "closed"] {
        std::fs::create_dir(scratch.path().join(name)).unwrap();
    }
    let ids = ids(scratch.path(), &["", "open", "closed"]);
    std::fs::set_permissions(scratch.path().join("closed"), PermissionsExt::from_mode(0o311)).unwrap();
    // Only this thread becomes an ordinary user; it also starts the watcher's thread.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut rights = rustix::thread::capabilities(None).unwrap();
            rights.effective = CapabilitySet::empty();
            rights.permitted = CapabilitySet::empty();
            rustix::thread::set_capabilities(None, rights).unwrap();
            let reports = Arc::new(Reports::default());
            let watcher = watch_root(scratch.path(), WatchKind::Filesystem, &reports);
            assert_eq!(watcher.kind(), WatchKind::Directories);
            let watch = |name: &str, id| watcher.watch(held(&scratch.path().join(name)).as_fd(), id);
            assert!(watch("", ids[0]) && watch("open", ids[1]));
            assert!(!watch("closed", ids[2]), "it may not be read");
            assert!(!watch("open", ids[2]), "another object");
            assert_eq!(watcher.take_shortage(), None);
            super::scene::run(scratch.path(), ": >open/new");
            let opened = ids[1];
            reports.wait("new", |outside| super::scene::is_name(outside, opened, "new"));
        });
    });
}

/// Runs one test of this program again, with `prefix` as the command that starts it.
fn run_test_in_child(prefix: &[&str], test: &str) {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(prefix[0]);
    command.args(&prefix[1..]).arg(program).args(["--exact", test, "--nocapture"]);
    let output = command.env("WIREFS_LIMITED", "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("limited test ran"), "{output:?}");
}

/// Whether this is the limited process that another test started.
fn is_limited() -> bool {
    let is_limited = std::env::var_os("WIREFS_LIMITED").is_some();
    if is_limited {
        println!("limited test ran");
    }
    is_limited
}

/// Watches directories up to the limit. Returns the shortage and their number.
fn fill(kind: WatchKind) -> (Shortage, usize) {
    let scratch = Scratch::new();
    let names: Vec<_> = (0..200).map(|number| format!("d{number}")).collect();
    for name in &names {
        std::fs::create_dir(scratch.path().join(name)).unwrap();
    }
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let ids = ids(scratch.path(), &names);
    let watcher = watch_root(scratch.path(), kind, &Arc::new(Reports::default()));
    assert_eq!(watcher.kind(), kind);
    let watch = |at: usize| watcher.watch(held(&scratch.path().join(names[at])).as_fd(), ids[at]);
    let watched = (0..names.len()).take_while(|at| watch(*at)).count();
    assert!(watched < names.len(), "no limit");
    let shortage = watcher.take_shortage().unwrap();
    assert_eq!(watcher.take_shortage(), None, "report once");
    assert!(watch(0), "watched before");
    watcher.unwatch(ids[0]);
    assert!(watch(watched), "there is room again");
    assert!(!watch(0));
    (shortage, watched)
}

#[test]
fn the_users_limit_of_watches_is_reported_once() {
    if is_limited() {
        for kind in [WatchKind::Directories, WatchKind::DirectoriesAndOwn] {
            let (shortage, watched) = fill(kind);
            assert_eq!((shortage, watched), (Shortage::UserWatches { watched: 7 }, 7), "{kind:?}");
            assert!(shortage.to_string().contains("fs.inotify.max_user_watches"));
        }
        return;
    }
    let limited = "cd /proc/sys/user && echo 7 >max_inotify_watches && echo 7 >max_fanotify_marks && exec \"$0\" \"$@\"";
    let test = "watch::limits::the_users_limit_of_watches_is_reported_once";
    run_test_in_child(&["unshare", "--user", "--map-root-user", "sh", "-c", limited], test);
}

/// Attaches repeatedly while watches without leases are released.
fn attach_while_trimming() {
    const KEPT: u64 = 14;
    let scratch = Scratch::new();
    (0..20).for_each(|number| std::fs::create_dir(scratch.path().join(format!("d{number}"))).unwrap());
    let detection = DetectionMode::Watched(WatchKind::Directories);
    let tree =
        HostTree::open(scratch.path(), HostOptions { detection, ..HostOptions::all_rights() }).unwrap();
    tree.observe(Box::new(|_| ()));
    let attach = |session: u64, dir: u64| {
        let path = TreePath::from_bytes(format!("d{dir}").into_bytes().into()).unwrap();
        tree.attach(SessionKey(session), &path).unwrap().root
    };
    // So many are watched that some are released.
    for number in 0..KEPT {
        attach(number, number);
    }
    let is_over = AtomicBool::new(false);
    let (mut leased, mut unwatched) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                tree.trim_watches(&|ids| vec![false; ids.len()]);
            }
        });
        for number in 0..3000 {
            let session = 100 + number;
            let root = attach(session, KEPT + number % 6);
            if root.leased {
                leased += 1;
                tree.verify(root.id, None, &mut |outside| {
                    let changed =
                        wirefs_server::ExternalChange::Changed { id: root.id, name: None, version: None };
                    unwatched += usize::from(outside == changed);
                });
            }
            tree.end(SessionKey(session));
        }
        is_over.store(true, Ordering::SeqCst);
    });
    assert!(leased > 0);
    assert_eq!(unwatched, 0, "of {leased} leased roots");
}

#[test]
fn the_root_of_a_session_is_leased_only_while_it_is_watched() {
    if is_limited() {
        return attach_while_trimming();
    }
    let limited = "ulimit -n 200 && exec \"$0\" \"$@\"";
    run_test_in_child(
        &["sh", "-c", limited],
        "watch::limits::the_root_of_a_session_is_leased_only_while_it_is_watched",
    );
}

#[test]
fn watches_take_only_a_part_of_the_descriptors() {
    if is_limited() {
        let (shortage, watched) = fill(WatchKind::Directories);
        assert_eq!((shortage, watched), (Shortage::OpenFiles { watched: 25 }, 25));
        return;
    }
    let limited = "ulimit -n 200 && exec \"$0\" \"$@\"";
    run_test_in_child(&["sh", "-c", limited], "watch::limits::watches_take_only_a_part_of_the_descriptors");
}
