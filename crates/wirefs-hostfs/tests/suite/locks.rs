//! Locks between sessions, between owners, and with server programs.

use crate::harness::{Collected, FIRST, ROUNDS_MAX, SECOND, World, at, create, keep, open_as};
use rustix::fs::FlockOperation;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wirefs_op::message::lock::{LockAction, Rlock, Tlock};
use wirefs_op::message::target::NOFD;
use wirefs_op::{Errno, Kind, LockFamily, LockKind, LockRange, Reply, Request};
use wirefs_server::{SessionKey, Tree};

/// The requester: session, owner, pid at the client.
type Requester = (SessionKey, u64, u32);

const ONE: Requester = (FIRST, 1, 11);
/// Another owner in the same session.
const BESIDE: Requester = (FIRST, 2, 12);
const OTHER: Requester = (SECOND, 1, 21);

fn request(
    requester: Requester,
    action: LockAction,
    family: LockFamily,
    kind: LockKind,
    start: u64,
    end: u64,
) -> Tlock {
    Tlock {
        target: at("file"),
        action,
        family,
        owner: requester.1,
        range: LockRange { kind, start, end, pid: requester.2 },
    }
}

fn ask(world: &World, requester: Requester, request: Tlock) -> Result<Rlock, Errno> {
    match world.ask_one(requester.0, Request::Lock(request))? {
        Reply::Lock(done) => Ok(done),
        reply => panic!("not an answer to Tlock: {reply:?}"),
    }
}

fn posix(world: &World, requester: Requester, kind: LockKind, start: u64, end: u64) -> Result<(), Errno> {
    ask(world, requester, request(requester, LockAction::Set, LockFamily::Posix, kind, start, end)).map(drop)
}

fn flock(world: &World, requester: Requester, kind: LockKind) -> Result<(), Errno> {
    ask(world, requester, request(requester, LockAction::Set, LockFamily::Flock, kind, 0, u64::MAX)).map(drop)
}

fn test(world: &World, requester: Requester, kind: LockKind, start: u64, end: u64) -> Option<LockRange> {
    let test = request(requester, LockAction::Test, LockFamily::Posix, kind, start, end);
    ask(world, requester, test).unwrap().conflict
}

fn with_file() -> World {
    let world = World::new();
    std::fs::write(world.host("file"), "data").unwrap();
    world
}

// S-41
#[test]
fn ranges_conflict_between_owners_and_sessions_but_not_within_one() {
    let world = with_file();
    posix(&world, ONE, LockKind::Write, 0, 99).unwrap();
    posix(&world, ONE, LockKind::Read, 50, 149).unwrap();
    for requester in [BESIDE, OTHER] {
        assert_eq!(posix(&world, requester, LockKind::Read, 10, 10), Err(Errno::WouldBlock));
        posix(&world, requester, LockKind::Read, 60, 70).unwrap();
        posix(&world, requester, LockKind::Write, 150, u64::MAX).unwrap();
        posix(&world, requester, LockKind::Unlock, 0, u64::MAX).unwrap();
    }
    posix(&world, ONE, LockKind::Unlock, 5, 15).unwrap();
    posix(&world, OTHER, LockKind::Write, 5, 15).unwrap();
    assert_eq!(posix(&world, OTHER, LockKind::Write, 4, 4), Err(Errno::WouldBlock));
}

// S-41
#[test]
fn a_test_returns_the_conflicting_lock_and_its_holder() {
    let world = with_file();
    posix(&world, ONE, LockKind::Write, 10, 19).unwrap();
    let conflict = test(&world, OTHER, LockKind::Read, 0, u64::MAX).unwrap();
    let expected = LockRange { kind: LockKind::Write, start: 10, end: 19, pid: 11 };
    assert_eq!(conflict, expected);
    assert_eq!(test(&world, ONE, LockKind::Write, 0, u64::MAX), None);
    assert_eq!(test(&world, OTHER, LockKind::Write, 20, u64::MAX), None);
    posix(&world, BESIDE, LockKind::Read, 100, u64::MAX).unwrap();
    assert_eq!(test(&world, OTHER, LockKind::Write, 200, 200).unwrap().end, u64::MAX);
}

// S-41
#[test]
fn a_test_returns_the_holder_and_range_of_a_shared_lock() {
    let world = with_file();
    posix(&world, ONE, LockKind::Read, 10, 14).unwrap();
    posix(&world, BESIDE, LockKind::Read, 12, 30).unwrap();
    posix(&world, BESIDE, LockKind::Unlock, 12, 30).unwrap();
    assert_eq!(test(&world, OTHER, LockKind::Read, 0, 99), None);
    let conflict = test(&world, OTHER, LockKind::Write, 0, 99);
    assert_eq!(conflict, Some(LockRange { kind: LockKind::Read, start: 10, end: 14, pid: 11 }));
    assert_eq!(test(&world, OTHER, LockKind::Write, 15, 99), None);
}

// S-40
#[test]
fn an_acquired_lock_returns_the_files_attributes() {
    let world = with_file();
    let lock = request(ONE, LockAction::Set, LockFamily::Posix, LockKind::Read, 0, 0);
    let had = ask(&world, ONE, lock).unwrap();
    assert_eq!(had.stat.unwrap(), world.stat(FIRST, at("file")).unwrap());
}

// S-41
#[test]
fn the_two_families_do_not_see_each_other() {
    let world = with_file();
    posix(&world, ONE, LockKind::Write, 0, u64::MAX).unwrap();
    flock(&world, OTHER, LockKind::Write).unwrap();
    assert_eq!(flock(&world, ONE, LockKind::Read), Err(Errno::WouldBlock));
    flock(&world, OTHER, LockKind::Read).unwrap();
    flock(&world, ONE, LockKind::Read).unwrap();
    flock(&world, OTHER, LockKind::Unlock).unwrap();
    flock(&world, ONE, LockKind::Write).unwrap();
}

// S-41
#[test]
fn server_programs_and_sessions_see_each_others_locks() {
    let world = with_file();
    let open = || std::fs::OpenOptions::new().read(true).write(true).open(world.host("file")).unwrap();
    let program = open();
    flock(&world, ONE, LockKind::Write).unwrap();
    let refused = rustix::fs::flock(&program, FlockOperation::NonBlockingLockShared);
    assert_eq!(refused, Err(rustix::io::Errno::WOULDBLOCK));
    flock(&world, ONE, LockKind::Unlock).unwrap();
    rustix::fs::flock(&program, FlockOperation::NonBlockingLockExclusive).unwrap();
    assert_eq!(flock(&world, ONE, LockKind::Read), Err(Errno::WouldBlock));
}

/// The file that a child of this test binary locks.
const CHILD_FILE: &str = "WIREFS_TEST_LOCK_FILE";

/// Not a test: the child of `fcntl_locks_of_programs_are_seen`.
#[test]
fn the_child_locks_until_its_input_ends() {
    let Some(path) = std::env::var_os(CHILD_FILE) else {
        return;
    };
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
    println!("locked");
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
}

// S-41
#[test]
fn fcntl_locks_of_programs_are_seen() {
    let world = with_file();
    let name = "locks::the_child_locks_until_its_input_ends";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD_FILE, world.host("file"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("locked")));
    assert_eq!(posix(&world, ONE, LockKind::Read, 0, 9), Err(Errno::WouldBlock));
    let conflict = test(&world, ONE, LockKind::Read, 0, 9).unwrap();
    assert_eq!((conflict.pid, conflict.kind), (child.id(), LockKind::Write));
    drop(child.stdin.take());
    // Reads on, so that the child can write its final output.
    lines.for_each(drop);
    assert!(child.wait().unwrap().success());
    posix(&world, ONE, LockKind::Read, 0, 9).unwrap();
}

// S-78
#[test]
fn the_end_of_a_session_releases_all_its_locks() {
    let world = with_file();
    posix(&world, ONE, LockKind::Write, 0, 9).unwrap();
    flock(&world, BESIDE, LockKind::Write).unwrap();
    assert_eq!(posix(&world, OTHER, LockKind::Write, 0, 9), Err(Errno::WouldBlock));
    world.tree.end(FIRST);
    posix(&world, OTHER, LockKind::Write, 0, 9).unwrap();
    flock(&world, OTHER, LockKind::Write).unwrap();
}

/// Waits until a thread has waited for its lock at least once.
fn until_waiting(waits: &AtomicU64) {
    for _ in 0..ROUNDS_MAX {
        if waits.load(Ordering::SeqCst) > 0 {
            return;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(1));
    }
    panic!("the lock never waited");
}

fn waiting() -> Tlock {
    request(OTHER, LockAction::Wait, LockFamily::Posix, LockKind::Write, 0, 9)
}

fn wait_beside(
    world: &World,
    requester: Requester,
    wait: Tlock,
    then: impl FnOnce(&AtomicBool),
) -> Vec<Reply> {
    let mut collected = Collected::default();
    let (waits, stopped) = (Arc::clone(&collected.waits), Arc::clone(&collected.stopped));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(move || {
            world.tree.serve(requester.0, Request::Lock(wait), &mut collected);
            collected.replies
        });
        until_waiting(&waits);
        then(&stopped);
        waiter.join().unwrap()
    })
}

#[test]
fn a_waiting_lock_is_acquired_after_a_release() {
    let world = with_file();
    posix(&world, ONE, LockKind::Write, 0, 9).unwrap();
    let replies =
        wait_beside(&world, OTHER, waiting(), |_| posix(&world, ONE, LockKind::Unlock, 0, 9).unwrap());
    assert!(matches!(replies.as_slice(), [Reply::Lock(_)]), "{replies:?}");
    assert_eq!(posix(&world, ONE, LockKind::Read, 0, 9), Err(Errno::WouldBlock));
}

// S-54
#[test]
fn a_waiting_lock_is_acquired_although_its_file_loses_its_name() {
    let world = with_file();
    let target = open_as("file", NOFD, world.stat(FIRST, at("file")).unwrap().id);
    let of_file = |requester, action, kind| Tlock {
        target: target.clone(),
        ..request(requester, action, LockFamily::Posix, kind, 0, 9)
    };
    ask(&world, ONE, of_file(ONE, LockAction::Set, LockKind::Write)).unwrap();
    let replies = wait_beside(&world, OTHER, of_file(OTHER, LockAction::Wait, LockKind::Write), |_| {
        world.remove(FIRST, "file").unwrap();
        ask(&world, ONE, of_file(ONE, LockAction::Set, LockKind::Unlock)).unwrap();
    });
    assert!(matches!(replies.as_slice(), [Reply::Lock(_)]), "{replies:?}");
}

// S-44
#[test]
fn deadlocked_locks_wait_until_one_is_canceled() {
    let world = with_file();
    posix(&world, ONE, LockKind::Write, 0, 9).unwrap();
    posix(&world, OTHER, LockKind::Write, 20, 29).unwrap();
    let wait = request(ONE, LockAction::Wait, LockFamily::Posix, LockKind::Write, 20, 29);
    let replies = wait_beside(&world, OTHER, waiting(), |_| {
        let replies = wait_beside(&world, ONE, wait, |stopped| stopped.store(true, Ordering::SeqCst));
        assert!(replies.is_empty(), "{replies:?}");
        posix(&world, ONE, LockKind::Unlock, 0, 9).unwrap();
    });
    assert!(matches!(replies.as_slice(), [Reply::Lock(_)]), "{replies:?}");
}

#[test]
fn a_canceled_lock_is_not_held() {
    let world = with_file();
    posix(&world, ONE, LockKind::Write, 0, 9).unwrap();
    let replies = wait_beside(&world, OTHER, waiting(), |stopped| stopped.store(true, Ordering::SeqCst));
    assert!(replies.is_empty());
    posix(&world, ONE, LockKind::Unlock, 0, 9).unwrap();
    posix(&world, ONE, LockKind::Write, 0, 9).unwrap();
}

/// The lock is acquired at the moment of its cancellation. The client does not know it, so it must be released.
#[test]
fn a_lock_without_its_reply_is_undone_and_the_earlier_one_stays() {
    let world = with_file();
    posix(&world, ONE, LockKind::Read, 0, 4).unwrap();
    let mut collected = Collected::default();
    collected.stopped.store(true, Ordering::SeqCst);
    let wait = request(ONE, LockAction::Wait, LockFamily::Posix, LockKind::Write, 0, 9);
    world.tree.serve(FIRST, Request::Lock(wait), &mut collected);
    posix(&world, OTHER, LockKind::Write, 5, 9).unwrap();
    posix(&world, OTHER, LockKind::Read, 0, 4).unwrap();
    assert_eq!(posix(&world, OTHER, LockKind::Write, 0, 4), Err(Errno::WouldBlock));
}

#[test]
fn an_unlinked_open_file_is_locked_and_released_by_its_fd() {
    let world = World::new();
    let made = world.put(FIRST, create("file", Kind::File, 0o600, keep())).unwrap();
    world.remove(FIRST, "file").unwrap();
    let target = open_as("file", made.fd, made.stat.unwrap().id);
    let on_fd = |requester: Requester, kind| {
        let mut lock = request(requester, LockAction::Set, LockFamily::Posix, kind, 0, 0);
        lock.target = target.clone();
        ask(&world, requester, lock).map(drop)
    };
    on_fd(ONE, LockKind::Write).unwrap();
    assert_eq!(on_fd(BESIDE, LockKind::Write), Err(Errno::WouldBlock));
    on_fd(ONE, LockKind::Unlock).unwrap();
    on_fd(BESIDE, LockKind::Write).unwrap();
}

#[test]
fn invalid_ranges_are_refused() {
    let world = with_file();
    assert_eq!(posix(&world, ONE, LockKind::Read, 5, 4), Err(Errno::Invalid));
    assert_eq!(posix(&world, ONE, LockKind::Read, 1 << 63, u64::MAX), Err(Errno::Overflow));
}

/// Many threads lock, upgrade and release random ranges; at the end the kernel's table and ours agree.
#[test]
fn concurrent_owners_leave_no_locks() {
    let world = with_file();
    std::thread::scope(|scope| {
        for owner in 0..4_u64 {
            let world = &world;
            scope.spawn(move || {
                let requester = (if owner % 2 == 0 { FIRST } else { SECOND }, 10 + owner, 0);
                for round in 0..500 {
                    let start = (owner * 7 + round * 13) % 50;
                    let kind = if round % 3 == 0 { LockKind::Write } else { LockKind::Read };
                    let _ = posix(world, requester, kind, start, start + 10);
                    let _ = test(world, requester, LockKind::Write, 0, 100);
                    posix(world, requester, LockKind::Unlock, 0, u64::MAX).unwrap();
                }
            });
        }
    });
    posix(&world, ONE, LockKind::Write, 0, u64::MAX).unwrap();
}
