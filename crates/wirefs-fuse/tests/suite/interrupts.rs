//! Signals reach the calls that they interrupt.

use crate::child;
use crate::mounted::Mounted;
use rustix::fs::{FlockOperation, fcntl_lock, flock};
use std::fs::File;
use std::os::unix::process::ExitStatusExt;

/// Kills a process that waits for a lock. It ends only when its call is answered.
fn kill_waiter(mounted: &Mounted, role: &str) {
    let path = mounted.path("file");
    let holder = File::create(&path).unwrap();
    match role {
        "flock" => flock(&holder, FlockOperation::LockExclusive).unwrap(),
        _ => fcntl_lock(&holder, FlockOperation::LockExclusive).unwrap(),
    }
    let before = mounted.memory.interrupted();
    let mut waiting = child::start(role, &path);
    mounted.memory.wait_until_called(&format!("pid: {} }}, wait: true", waiting.id()));
    waiting.kill().unwrap();
    assert_eq!(waiting.wait().unwrap().signal(), Some(9));
    assert_eq!(mounted.memory.interrupted(), before + 1);
}

// S-71
#[test]
fn a_blocked_lock_is_interrupted_by_a_signal() {
    let mounted = Mounted::new();
    kill_waiter(&mounted, "flock");
    kill_waiter(&mounted, "fcntl");
}

/// Three threads read interrupts, each from its own descriptor; the call was read from one of them.
#[test]
fn an_early_interrupt_is_repeated() {
    let mounted = Mounted::new();
    for _ in 0..8 {
        mounted.memory.refuse_interrupts(20);
        kill_waiter(&mounted, "flock");
    }
}
