//! What does not fit: queues, watches, descriptors; and the end.

use super::scene::{Heard, KINDS, Scene, act, held, queue_max, run, watch_root};
use crate::harness::{Scratch, need_root};
use rustix::fd::AsFd;
use rustix::thread::CapabilitySet;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wirefs_hostfs::{HostOptions, HostTree, Notice, Shortage, WatchKind, Watcher};
use wirefs_op::{FileId, TreePath};
use wirefs_server::{ExternalChange, SessionKey, Tree};

#[test]
fn more_than_the_queue_holds_is_told_as_lost_and_watching_goes_on() {
    for kind in KINDS {
        let scene = Scene::new(kind, ": >file");
        let gate = scene.heard.gate.lock().unwrap();
        scene.run("printf a >>file");
        scene.heard.wait_until_held();
        let names = queue_max(kind) + 1000;
        scene.run(&format!("seq -f f%.0f {names} | xargs touch"));
        drop(gate);
        scene.heard.wait("lost", |outside| *outside == ExternalChange::Lost);
        scene.begin();
        scene.run("printf b >>file");
        scene.hears_object(scene.id("file"), "after the loss");
    }
}

/// A program that changes much, beside the export or in it, is read while it is told.
#[test]
fn more_than_the_queue_holds_is_not_lost_where_each_report_takes_a_while() {
    let kind = WatchKind::Filesystem;
    let scene = Scene::new(kind, "mkdir beside");
    scene.heard.each_takes(Duration::from_micros(20));
    let names = 2 * queue_max(kind) + 10_000;
    scene.run(&format!("cd beside; seq -f f%.0f {names} | xargs touch"));
    scene.settle();
    let all = scene.heard.all();
    assert!(!all.contains(&ExternalChange::Lost), "{} reports", all.len());
    assert!(all.len() > names, "{} reports", all.len());
}

/// While the number of a removed object is given to a new one, the kernel cannot say what its handle means. Seen on ext4.
#[test]
fn what_is_removed_as_soon_as_it_is_made_is_no_loss() {
    need_root();
    let scratch = Scratch::new();
    let [dir, beside] = ["dir", "beside"].map(|name| scratch.path().join(name));
    std::fs::create_dir(&dir).unwrap();
    std::fs::create_dir(&beside).unwrap();
    let heard = Arc::new(Heard::default());
    let watcher = watch_root(&dir, WatchKind::Filesystem, &heard);
    assert_eq!(watcher.kind(), WatchKind::Filesystem, "{}", scratch.path().display());
    act("make and remove", &[beside]);
    run(&dir, ": >by-another");
    heard.wait(
        "the last one",
        |outside| matches!(outside, ExternalChange::Changed { name: Some(name), .. } if name.as_ref() == b"by-another"),
    );
    assert!(!heard.all().contains(&ExternalChange::Lost), "{} reports", heard.all().len());
}

#[test]
fn dropping_it_ends_its_thread() {
    for kind in KINDS {
        let mut scene = Scene::new(kind, ": >file");
        assert!(Arc::strong_count(&scene.heard) > 1);
        drop(scene.watcher.take());
        assert_eq!(Arc::strong_count(&scene.heard), 1, "nobody is left who could tell");
    }
}

#[test]
fn a_watcher_that_failed_watches_nothing() {
    for kind in KINDS {
        let scene = Scene::new(kind, ": >file");
        let heard = Arc::new(Heard::default());
        let told = Arc::clone(&heard);
        let root = held(&scene.world.host(""));
        let failing = Watcher::start(root.as_fd(), kind, move |outside| {
            told.hear(outside);
            panic!("on purpose");
        });
        assert!(failing.watch(root.as_fd(), scene.id("")));
        scene.run(": >new");
        while failing.kind() != WatchKind::Nothing {
            std::thread::yield_now();
        }
        assert!(!failing.watch(root.as_fd(), scene.id("")));
        assert_eq!(heard.all().len(), 1);
    }
}

/// The ids in a directory, as the server knows them.
fn ids(dir: &std::path::Path, names: &[&str]) -> Vec<FileId> {
    let tree = HostTree::open(dir, HostOptions::default()).unwrap();
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
    // This thread alone becomes an ordinary user's; the watcher's own is made by it.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut rights = rustix::thread::capabilities(None).unwrap();
            rights.effective = CapabilitySet::empty();
            rights.permitted = CapabilitySet::empty();
            rustix::thread::set_capabilities(None, rights).unwrap();
            let heard = Arc::new(Heard::default());
            let watcher = watch_root(scratch.path(), WatchKind::Filesystem, &heard);
            assert_eq!(watcher.kind(), WatchKind::Directories);
            let watch = |name: &str, id| watcher.watch(held(&scratch.path().join(name)).as_fd(), id);
            assert!(watch("", ids[0]) && watch("open", ids[1]));
            assert!(!watch("closed", ids[2]), "it may not be read");
            assert!(!watch("open", ids[2]), "another object");
            assert_eq!(watcher.take_shortage(), None);
            super::scene::run(scratch.path(), ": >open/new");
            let opened = ids[1];
            heard.wait("new", |outside| super::scene::is_name(outside, opened, "new"));
        });
    });
}

/// Runs one test of this program again, behind `prefix`, which is a command that runs its arguments.
fn again(prefix: &[&str], test: &str) {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(prefix[0]);
    command.args(&prefix[1..]).arg(program).args(["--exact", test, "--nocapture"]);
    let output = command.env("WIREFS_LIMITED", "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("limited test ran"), "{output:?}");
}

/// Whether this is the process that another test started with limits.
fn is_limited() -> bool {
    let is_limited = std::env::var_os("WIREFS_LIMITED").is_some();
    if is_limited {
        println!("limited test ran");
    }
    is_limited
}

/// Watches directories until it cannot; the limit that was told, and how many there are.
fn fill(kind: WatchKind) -> (Shortage, usize) {
    let scratch = Scratch::new();
    let names: Vec<_> = (0..200).map(|number| format!("d{number}")).collect();
    for name in &names {
        std::fs::create_dir(scratch.path().join(name)).unwrap();
    }
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let ids = ids(scratch.path(), &names);
    let watcher = watch_root(scratch.path(), kind, &Arc::new(Heard::default()));
    assert_eq!(watcher.kind(), kind);
    let watch = |at: usize| watcher.watch(held(&scratch.path().join(names[at])).as_fd(), ids[at]);
    let watched = (0..names.len()).take_while(|at| watch(*at)).count();
    assert!(watched < names.len(), "no limit");
    let shortage = watcher.take_shortage().unwrap();
    assert_eq!(watcher.take_shortage(), None, "told once");
    assert!(watch(0), "watched before");
    watcher.unwatch(ids[0]);
    assert!(watch(watched), "there is room again");
    assert!(!watch(0));
    (shortage, watched)
}

#[test]
fn the_users_limit_of_watches_is_told_once_and_what_does_not_fit_is_not_watched() {
    if is_limited() {
        for kind in [WatchKind::Directories, WatchKind::DirectoriesAndOwn] {
            let (shortage, watched) = fill(kind);
            assert_eq!((shortage, watched), (Shortage::UserWatches { watched: 7 }, 7), "{kind:?}");
            assert!(shortage.to_string().contains("fs.inotify.max_user_watches"));
        }
        return;
    }
    let limited = "cd /proc/sys/user && echo 7 >max_inotify_watches && echo 7 >max_fanotify_marks && exec \"$0\" \"$@\"";
    let test = "watch::limits::the_users_limit_of_watches_is_told_once_and_what_does_not_fit_is_not_watched";
    again(&["unshare", "--user", "--map-root-user", "sh", "-c", limited], test);
}

/// Attaches while watches that nobody relies on are let go all the time.
fn attach_while_trimming() {
    const KEPT: u64 = 14;
    let scratch = Scratch::new();
    (0..20).for_each(|number| std::fs::create_dir(scratch.path().join(format!("d{number}"))).unwrap());
    let notice = Notice::Watched(WatchKind::Directories);
    let tree = HostTree::open(scratch.path(), HostOptions { notice, ..HostOptions::default() }).unwrap();
    tree.observe(Box::new(|_| ()));
    let attach = |session: u64, dir: u64| {
        let path = TreePath::from_bytes(format!("d{dir}").into_bytes().into()).unwrap();
        tree.attach(SessionKey(session), &path).unwrap().root
    };
    // So many are watched that some are let go.
    for number in 0..KEPT {
        attach(number, number);
    }
    let is_over = AtomicBool::new(false);
    let (mut promised, mut unwatched) = (0, 0);
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
                promised += 1;
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
    assert!(promised > 0);
    assert_eq!(unwatched, 0, "of {promised} roots that were promised");
}

#[test]
fn the_root_of_who_attaches_is_promised_only_while_it_is_watched() {
    if is_limited() {
        return attach_while_trimming();
    }
    let limited = "ulimit -n 200 && exec \"$0\" \"$@\"";
    again(
        &["sh", "-c", limited],
        "watch::limits::the_root_of_who_attaches_is_promised_only_while_it_is_watched",
    );
}

#[test]
fn watches_take_a_part_of_the_descriptors_only() {
    if is_limited() {
        let (shortage, watched) = fill(WatchKind::Directories);
        assert_eq!((shortage, watched), (Shortage::OpenFiles { watched: 25 }, 25));
        return;
    }
    let limited = "ulimit -n 200 && exec \"$0\" \"$@\"";
    again(&["sh", "-c", limited], "watch::limits::watches_take_a_part_of_the_descriptors_only");
}
