//! The end of calls and mounts after failures.

use crate::child;
use crate::mounted::Mounted;
use rustix::io::Errno;
use std::fs;
use std::process::Command;
use std::thread;
use wirefs_fuse::{Ended, SessionOptions, UnmountError, abort, unmount};

#[test]
fn a_panic_a_dropped_reply_and_a_wrong_answer_fail_only_the_call() {
    let mounted = Mounted::with(SessionOptions { threads: 1, ..SessionOptions::default() });
    for name in ["panic", "drop", "misfit"] {
        let error = fs::metadata(mounted.path(name)).expect_err(name);
        assert_eq!(Errno::from_io_error(&error), Some(Errno::IO), "{name}");
    }
    fs::write(mounted.path("alive"), b"x").unwrap();
}

#[test]
fn another_thread_reads_while_a_handed_over_call_waits() {
    others_go_on_beside("waits", true);
}

#[test]
fn a_blocked_call_without_a_handover_loses_the_role() {
    others_go_on_beside("stuck", true);
}

#[test]
fn without_a_single_reader_no_handover_is_needed() {
    others_go_on_beside("stuck", false);
}

fn others_go_on_beside(name: &str, single_reader: bool) {
    let mounted = Mounted::with(SessionOptions { threads: 2, single_reader, ..SessionOptions::default() });
    let skips = mounted.path(name);
    let waiting = thread::spawn(move || fs::metadata(skips));
    mounted.memory.wait_until_called(&format!("{:?}", name.as_bytes()));
    let error = fs::metadata(mounted.path("goes-on")).expect_err("there is none");
    assert_eq!(Errno::from_io_error(&error), Some(Errno::NOENT));
    let error = waiting.join().unwrap().expect_err("it says so");
    assert_eq!(Errno::from_io_error(&error), Some(Errno::EXIST), "it waited, and not in vain");
}

#[test]
fn all_threads_survive_panics() {
    let mounted = Mounted::with(SessionOptions { threads: 3, ..SessionOptions::default() });
    for _ in 0..9 {
        let error = fs::metadata(mounted.path("panic")).expect_err("it panicked");
        assert_eq!(Errno::from_io_error(&error), Some(Errno::IO));
        let skips = mounted.path("waits");
        let waiting = thread::spawn(move || fs::metadata(skips));
        fs::metadata(mounted.path("goes-on")).expect_err("there is none");
        waiting.join().unwrap().expect_err("it says so");
    }
    assert_eq!(mounted.end(), Ended::Unmounted);
}

#[test]
fn an_execve_that_closes_many_files_of_the_mount_ends() {
    let mounted =
        Mounted::with(SessionOptions { threads: 2, single_reader: false, ..SessionOptions::default() });
    let files = (0..40).map(|number| fs::File::create(mounted.path(&format!("file{number}"))).unwrap());
    let _open: Vec<_> = files.collect();
    for _ in 0..5 {
        assert!(Command::new("true").status().unwrap().success());
    }
    fs::write(mounted.path("alive"), b"x").unwrap();
}

#[test]
fn a_session_ends_when_it_is_unmounted() {
    assert_eq!(Mounted::new().end(), Ended::Unmounted);
}

#[test]
fn a_mount_in_use_is_only_unmounted_lazily() {
    let mounted = Mounted::new();
    let open = fs::File::create(mounted.path("file")).unwrap();
    assert!(matches!(unmount(mounted.root(), false), Err(UnmountError::Busy { .. })));
    unmount(mounted.root(), true).unwrap();
    assert!(matches!(unmount(mounted.root(), true), Err(UnmountError::NotMounted { .. })));
    open.sync_all().unwrap();
}

#[test]
fn unmount_without_a_mount_fails() {
    for path in ["/", "/proc", "/absent", "/proc/self/status"] {
        for result in [unmount(path.as_ref(), true), abort(path.as_ref())] {
            assert!(matches!(result, Err(UnmountError::NotMounted { .. })), "{path}: {result:?}");
        }
    }
}

#[test]
fn abort_releases_callers_of_a_silent_server() {
    let mounted = Mounted::new();
    let mut stuck = child::start("stat", &mounted.path("hang"));
    mounted.memory.wait_until_called("[104, 97, 110, 103]");
    abort(mounted.root()).unwrap();
    assert!(!stuck.wait().unwrap().success(), "it got an error, and did not hang");
}
