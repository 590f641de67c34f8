//! How calls and mounts end when something is wrong.

use crate::child;
use crate::mounted::Mounted;
use rustix::io::Errno;
use std::fs;
use std::thread;
use wirefs_fuse::{Ended, SessionOptions, UnmountError, abort, unmount};

#[test]
fn a_panic_a_dropped_reply_and_a_misfit_cost_the_call_only() {
    let mounted = Mounted::with(SessionOptions { threads: 1, ..SessionOptions::default() });
    for name in ["panic", "drop", "misfit"] {
        let error = fs::metadata(mounted.path(name)).expect_err(name);
        assert_eq!(Errno::from_io_error(&error), Some(Errno::IO), "{name}");
    }
    fs::write(mounted.path("alive"), b"x").unwrap();
}

#[test]
fn while_a_call_waits_that_handed_over_another_thread_reads() {
    others_go_on_beside("waits", true);
}

#[test]
fn a_call_that_waits_and_does_not_hand_over_loses_its_turn() {
    others_go_on_beside("stuck", true);
}

#[test]
fn where_all_threads_read_none_has_to_hand_over() {
    others_go_on_beside("stuck", false);
}

fn others_go_on_beside(name: &str, reads_in_turn: bool) {
    let mounted = Mounted::with(SessionOptions { threads: 2, reads_in_turn, ..SessionOptions::default() });
    let waits = mounted.path(name);
    let waiting = thread::spawn(move || fs::metadata(waits));
    mounted.memory.wait_until_asked(&format!("{:?}", name.as_bytes()));
    let error = fs::metadata(mounted.path("goes-on")).expect_err("there is none");
    assert_eq!(Errno::from_io_error(&error), Some(Errno::NOENT));
    let error = waiting.join().unwrap().expect_err("it says so");
    assert_eq!(Errno::from_io_error(&error), Some(Errno::EXIST), "it waited, and not in vain");
}

#[test]
fn after_panics_in_all_threads_all_read_and_all_end() {
    let mounted = Mounted::with(SessionOptions { threads: 3, ..SessionOptions::default() });
    for _ in 0..9 {
        let error = fs::metadata(mounted.path("panic")).expect_err("it panicked");
        assert_eq!(Errno::from_io_error(&error), Some(Errno::IO));
        let waits = mounted.path("waits");
        let waiting = thread::spawn(move || fs::metadata(waits));
        fs::metadata(mounted.path("goes-on")).expect_err("there is none");
        waiting.join().unwrap().expect_err("it says so");
    }
    assert_eq!(mounted.end(), Ended::Unmounted);
}

#[test]
fn a_session_ends_when_it_is_unmounted() {
    assert_eq!(Mounted::new().end(), Ended::Unmounted);
}

#[test]
fn a_mount_in_use_is_not_unmounted_but_lazily() {
    let mounted = Mounted::new();
    let open = fs::File::create(mounted.path("file")).unwrap();
    assert!(matches!(unmount(mounted.root(), false), Err(UnmountError::Busy { .. })));
    unmount(mounted.root(), true).unwrap();
    assert!(matches!(unmount(mounted.root(), true), Err(UnmountError::NotMounted { .. })));
    open.sync_all().unwrap();
}

#[test]
fn nothing_is_unmounted_where_nothing_is_mounted() {
    for path in ["/", "/proc", "/absent", "/proc/self/status"] {
        for result in [unmount(path.as_ref(), true), abort(path.as_ref())] {
            assert!(matches!(result, Err(UnmountError::NotMounted { .. })), "{path}: {result:?}");
        }
    }
}

#[test]
fn a_caller_of_a_server_that_never_answers_is_released_by_force() {
    let mounted = Mounted::new();
    let mut stuck = child::start("stat", &mounted.path("hang"));
    mounted.memory.wait_until_asked("[104, 97, 110, 103]");
    abort(mounted.root()).unwrap();
    assert!(!stuck.wait().unwrap().success(), "it got an error, and did not hang");
}
