//! Signals reach the calls that they interrupt.

use crate::child;
use crate::mounted::Mounted;
use rustix::fs::{FlockOperation, fcntl_lock, flock};
use std::fs::File;
use std::os::unix::process::ExitStatusExt;

/// Kills a process that waits for a lock. It must go, which it only does when its call is answered.
fn a_waiter_is_killed(mounted: &Mounted, role: &str) {
    let path = mounted.path("file");
    let holder = File::create(&path).unwrap();
    match role {
        "flock" => flock(&holder, FlockOperation::LockExclusive).unwrap(),
        _ => fcntl_lock(&holder, FlockOperation::LockExclusive).unwrap(),
    }
    let before = mounted.memory.interrupted();
    let mut waiting = child::start(role, &path);
    mounted.memory.wait_until_asked(&format!("pid: {} }}, wait: true", waiting.id()));
    waiting.kill().unwrap();
    assert_eq!(waiting.wait().unwrap().signal(), Some(9));
    assert_eq!(mounted.memory.interrupted(), before + 1);
}

// S-71
#[test]
fn a_blocked_lock_is_interrupted_by_a_signal() {
    let mounted = Mounted::new();
    a_waiter_is_killed(&mounted, "flock");
    a_waiter_is_killed(&mounted, "fcntl");
}

/// Three threads read interrupts, each from its own descriptor; the call was read from one of them.
#[test]
fn an_interrupt_that_comes_too_early_comes_again() {
    let mounted = Mounted::new();
    for _ in 0..8 {
        mounted.memory.refuse_interrupts(20);
        a_waiter_is_killed(&mounted, "flock");
    }
}
