//! Locks of both families: held, waited for, distinguished.

use crate::child;
use crate::mounted::Mounted;
use rustix::fs::{FlockOperation, fcntl_lock, flock};
use rustix::io::Errno;
use std::fs::File;

#[test]
fn flock_and_fcntl_locks_do_not_see_each_other() {
    let mounted = Mounted::new();
    let path = mounted.path("file");
    let (first, second) = (File::create(&path).unwrap(), File::create(&path).unwrap());
    flock(&first, FlockOperation::LockExclusive).unwrap();
    fcntl_lock(&second, FlockOperation::LockExclusive).unwrap();
    assert_eq!(flock(&second, FlockOperation::NonBlockingLockExclusive), Err(Errno::WOULDBLOCK));
    assert!(mounted.memory.was_called("family: Flock"));
    assert!(mounted.memory.was_called("family: Posix"));
    let whole = format!("start: 0, end: {}", u64::MAX);
    assert!(mounted.memory.was_called(&whole), "to the end, however long");
}

#[test]
fn a_lock_is_acquired_after_its_holder_closes() {
    let mounted = Mounted::new();
    let path = mounted.path("file");
    for role in ["flock", "fcntl"] {
        let holder = File::create(&path).unwrap();
        match role {
            "flock" => flock(&holder, FlockOperation::LockExclusive).unwrap(),
            _ => fcntl_lock(&holder, FlockOperation::LockExclusive).unwrap(),
        }
        let mut waiting = child::start(role, &path);
        let family = if role == "flock" { "Flock" } else { "Posix" };
        let pid = format!("pid: {} }}, wait: true", waiting.id());
        mounted.memory.wait_until_called(&pid);
        assert!(mounted.memory.calls().iter().any(|call| call.contains(&pid) && call.contains(family)));
        assert!(waiting.try_wait().unwrap().is_none(), "it waits");
        drop(holder);
        assert!(waiting.wait().unwrap().success());
    }
}

#[test]
fn a_conflicting_lock_is_returned() {
    let mounted = Mounted::new();
    let path = mounted.path("file");
    let file = File::create(&path).unwrap();
    let range = rustix::process::Flock::from(rustix::process::FlockType::WriteLock);
    assert_eq!(rustix::process::fcntl_getlk(&file, &range).unwrap(), None);
    assert!(mounted.memory.was_called("Getlk"));
}

/// The kernel identifies the owner by the address of its open file, and the next open file may have the same
/// address before the RELEASE of this one is read.
#[test]
fn a_lock_outlives_the_release_of_an_earlier_open_file() {
    let mounted = Mounted::new();
    let path = mounted.path("file");
    let other = File::create(&path).unwrap();
    for _ in 0..500 {
        let holder = File::open(&path).unwrap();
        flock(&holder, FlockOperation::LockExclusive).unwrap();
        for _ in 0..4 {
            assert_eq!(flock(&other, FlockOperation::NonBlockingLockExclusive), Err(Errno::WOULDBLOCK));
        }
    }
}
