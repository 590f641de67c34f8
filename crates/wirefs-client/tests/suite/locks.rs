//! Locks of a mount that is alone: lent by the server, and answered here.

use crate::ahead::{alone, at_once, journaling, lone};
use crate::config;
use crate::deeds::{NEW, READ_WRITE, entry, handle, write};
use crate::world::World;
use std::time::Duration;
use wirefs_client::call::{Answer, Call, CallId, Handle, ROOT, TreeNodeId};
use wirefs_op::{Errno, LockFamily, LockKind, LockRange};

const ONE: u64 = 1;
const OTHER: u64 = 2;

fn range(kind: LockKind, start: u64, end: u64) -> LockRange {
    LockRange { kind, start, end, pid: 0 }
}

fn all(kind: LockKind) -> LockRange {
    range(kind, 0, u64::MAX)
}

/// An open file, which is locked.
#[derive(Clone, Copy)]
struct Open {
    node: TreeNodeId,
    handle: Handle,
}

impl Open {
    fn new(world: &mut World, seat: usize, name: &[u8]) -> Open {
        let node = world.lookup(seat, ROOT, name);
        let handle = handle(world.ask(seat, Call::Open { node, how: READ_WRITE }));
        Open { node, handle }
    }

    fn set(self, owner: u64, range: LockRange, wait: bool) -> Call<'static> {
        let Open { node, handle } = self;
        Call::Setlk { node, handle, owner, family: LockFamily::Posix, range, wait }
    }

    fn lock(self, world: &mut World, seat: usize, owner: u64, range: LockRange) {
        assert_eq!(world.ask(seat, self.set(owner, range, false)), Answer::Done);
    }
}

/// A lone mount with a file that is open and settled.
fn with_file() -> (World, Open) {
    let mut world = lone();
    world.file(0, ROOT, b"db", b"data");
    world.settle();
    let open = Open::new(&mut world, 0, b"db");
    world.settle();
    (world, open)
}

// S-45
#[test]
fn a_lone_mount_asks_once_for_the_locks_of_a_file_and_answers_the_rest() {
    let (mut world, open) = with_file();
    let began = world.now;
    open.lock(&mut world, 0, ONE, range(LockKind::Write, 10, 19));
    assert_eq!(world.now.since(began), Duration::from_millis(100));
    at_once(&mut world, |world| {
        for _ in 0..10 {
            open.lock(world, 0, ONE, range(LockKind::Read, 0, 9));
            open.lock(world, 0, ONE, range(LockKind::Write, 20, 29));
            open.lock(world, 0, ONE, all(LockKind::Unlock));
        }
    });
    let ahead = world.seats[0].client.snapshot().ahead;
    assert_eq!((ahead.lent, ahead.locks), (1, 30));
    // It is given back when nothing was locked for a while, and when the file is closed.
    world.pass(Duration::from_secs(2));
    assert_eq!(world.locked(), []);
    open.lock(&mut world, 0, ONE, range(LockKind::Write, 1, 1));
    assert_eq!(world.locked(), [all(LockKind::Write)]);
    world.close(0, open.node, open.handle);
    world.settle();
    assert_eq!(world.locked(), []);
}

// S-46
#[test]
fn server_program_gets_delegated_locks_within_seconds_but_not_held_ones() {
    let (mut world, open) = with_file();
    open.lock(&mut world, 0, ONE, range(LockKind::Write, 10, 19));
    let (held, free) = (range(LockKind::Read, 10, 10), range(LockKind::Write, 0, 9));
    assert!(!world.lock_at_server(free), "all of it is lent");
    let began = world.now;
    while !world.lock_at_server(free) {
        assert!(!world.lock_at_server(held));
        // Its owner is busy with it all the time.
        open.lock(&mut world, 0, ONE, range(LockKind::Write, 15, 19));
        world.pass(Duration::from_millis(100));
    }
    assert!(world.now.since(began) <= Duration::from_secs(6));
    assert!(!world.lock_at_server(held));
    assert_eq!(world.locked(), [range(LockKind::Write, 10, 19)]);
    // And what it has nobody here gets.
    let answer = world.ask(0, open.set(ONE, range(LockKind::Read, 5, 5), false));
    assert_eq!(answer, Answer::Fail(Errno::WouldBlock));
}

// S-47
#[test]
fn a_file_that_a_program_at_the_server_changes_is_not_held_beyond_what_is_locked() {
    let (mut world, open) = with_file();
    open.lock(&mut world, 0, ONE, range(LockKind::Write, 10, 19));
    assert!(!world.lock_at_server(range(LockKind::Write, 0, 9)), "all of it is delegated");
    world.change_at_server();
    world.settle();
    assert_eq!(world.locked(), [range(LockKind::Write, 10, 19)]);
    for _ in 0..5 {
        assert!(world.lock_at_server(range(LockKind::Write, 0, 9)));
        assert!(world.lock_at_server(range(LockKind::Unlock, 0, 9)));
        open.lock(&mut world, 0, ONE, range(LockKind::Write, 20, 29));
        assert_eq!(world.locked(), [range(LockKind::Write, 10, 29)]);
        open.lock(&mut world, 0, ONE, range(LockKind::Unlock, 20, 29));
        world.pass(Duration::from_secs(1));
    }
    // A program that has stopped costs the mount no more round trips.
    world.pass(Duration::from_secs(6));
    open.lock(&mut world, 0, ONE, range(LockKind::Write, 20, 29));
    assert_eq!(world.locked(), [all(LockKind::Write)]);
}

// S-46
#[test]
fn readers_here_leave_readers_at_the_server_alone() {
    let (mut world, open) = with_file();
    open.lock(&mut world, 0, ONE, range(LockKind::Read, 10, 19));
    assert_eq!(world.locked(), [all(LockKind::Read)]);
    assert!(world.lock_at_server(range(LockKind::Read, 0, 99)));
    // Now not all of it can be had exclusively, but what is wanted can.
    open.lock(&mut world, 0, ONE, range(LockKind::Write, 200, 200));
    assert_eq!(world.locked(), [range(LockKind::Read, 10, 19), range(LockKind::Write, 200, 200)]);
    world.lock_at_server(range(LockKind::Write, 300, 300));
    let answer = world.ask(0, open.set(ONE, range(LockKind::Read, 300, 300), false));
    assert_eq!(answer, Answer::Fail(Errno::WouldBlock));
}

// S-42
#[test]
fn second_mount_meets_held_locks_and_no_delegations() {
    let (mut world, open) = with_file();
    open.lock(&mut world, 0, ONE, range(LockKind::Write, 10, 19));
    open.lock(&mut world, 0, ONE, range(LockKind::Read, 30, 39));
    world.another(config("lease"));
    let expected = [range(LockKind::Write, 10, 19), range(LockKind::Read, 30, 39)];
    assert_eq!(world.locked(), expected);
    let other = Open::new(&mut world, 1, b"db");
    other.lock(&mut world, 1, OTHER, range(LockKind::Write, 0, 9));
    let refused = Answer::Fail(Errno::WouldBlock);
    assert_eq!(world.ask(1, other.set(OTHER, range(LockKind::Read, 19, 19), false)), refused);
    assert_eq!(world.ask(0, open.set(ONE, range(LockKind::Read, 0, 0), false)), refused);
    // From now on each is asked for.
    let (answer, sent) = world.cost(0, open.set(ONE, range(LockKind::Write, 50, 50), false));
    assert_eq!((answer, sent), (Answer::Done, vec!["Lock"]));
    assert_eq!(world.seats[0].client.snapshot().ahead.lent, 0);
}

// S-42
#[test]
fn a_lock_that_is_asked_for_while_another_mount_comes_is_had_as_it_is() {
    let (mut world, open) = with_file();
    let call = world.call(0, open.set(ONE, range(LockKind::Write, 10, 19), false));
    world.another(config("lease"));
    assert_eq!(world.locked(), [range(LockKind::Write, 10, 19)]);
    assert_eq!(world.wait(0, call), Answer::Done);
    let other = Open::new(&mut world, 1, b"db");
    other.lock(&mut world, 1, OTHER, range(LockKind::Write, 0, 9));
}

// S-42
#[test]
fn programs_of_an_exclusive_mount_exclude_each_other_and_a_waiter_gets_its_lock() {
    let (mut world, open) = with_file();
    open.lock(&mut world, 0, ONE, range(LockKind::Write, 10, 19));
    at_once(&mut world, |world| {
        let refused = world.ask(0, open.set(OTHER, range(LockKind::Write, 0, 10), false));
        assert_eq!(refused, Answer::Fail(Errno::WouldBlock));
        let Open { node, handle } = open;
        let family = LockFamily::Posix;
        let get = |range| Call::Getlk { node, handle, owner: OTHER, family, range };
        let found = world.ask(0, get(range(LockKind::Read, 0, 99)));
        assert_eq!(found, Answer::Lock(Some(range(LockKind::Write, 10, 19))));
        assert_eq!(world.ask(0, get(range(LockKind::Read, 20, 99))), Answer::Lock(None));
    });
    let waiting = world.call(0, open.set(OTHER, range(LockKind::Write, 0, 10), true));
    let killed = world.call(0, open.set(OTHER, range(LockKind::Write, 12, 12), true));
    world.pass(Duration::from_secs(1));
    let waits = |world: &World, call: CallId| world.seats[0].client.is_waiting(call);
    assert!(waits(&world, waiting) && waits(&world, killed));
    world.call(0, Call::Interrupt { call: killed });
    assert_eq!(world.wait(0, killed), Answer::Fail(Errno::Interrupted));
    open.lock(&mut world, 0, ONE, all(LockKind::Unlock));
    assert_eq!(world.wait(0, waiting), Answer::Done);
    world.settle();
    assert_eq!(world.locked(), [range(LockKind::Write, 0, 10)]);
}

// S-41, S-42
#[test]
fn a_test_of_a_shared_lock_that_is_delegated_names_what_is_held_and_nothing_else() {
    let (mut world, open) = with_file();
    let held = LockRange { pid: 7, ..range(LockKind::Read, 10, 14) };
    open.lock(&mut world, 0, ONE, held);
    let Open { node, handle } = open;
    let get = |range| Call::Getlk { node, handle, owner: OTHER, family: LockFamily::Posix, range };
    assert_eq!(world.ask(0, get(range(LockKind::Read, 0, 99))), Answer::Lock(None));
    // The server has the whole file for the other one until it is asked.
    assert_eq!(world.ask(0, get(range(LockKind::Write, 50, 59))), Answer::Lock(None));
    for _ in 0..2 {
        assert_eq!(world.ask(0, get(range(LockKind::Write, 0, 99))), Answer::Lock(Some(held)));
        open.lock(&mut world, 0, OTHER, range(LockKind::Read, 50, 59));
    }
}

// S-42
#[test]
fn a_test_does_not_overtake_a_release_that_was_answered_before() {
    let (mut world, open) = with_file();
    world.another(config("lease"));
    open.lock(&mut world, 0, ONE, range(LockKind::Write, 10, 14));
    let Open { node, handle } = open;
    open.lock(&mut world, 0, ONE, all(LockKind::Unlock));
    let get =
        Call::Getlk { node, handle, owner: OTHER, family: LockFamily::Posix, range: all(LockKind::Write) };
    assert_eq!(world.ask(0, get), Answer::Lock(None));
}

// S-42
#[test]
fn a_connection_that_is_made_again_keeps_what_is_held_and_lends_anew() {
    let (mut world, open) = with_file();
    open.lock(&mut world, 0, ONE, range(LockKind::Write, 10, 19));
    world.cut(0, Duration::from_secs(1), true);
    // What is locked meanwhile waits for the connection.
    open.lock(&mut world, 0, ONE, range(LockKind::Write, 30, 39));
    world.settle();
    assert_eq!(world.locked(), [range(LockKind::Write, 10, 19), range(LockKind::Write, 30, 39)]);
    world.pass(Duration::from_secs(2));
    let mut world = alone(world);
    open.lock(&mut world, 0, ONE, range(LockKind::Write, 50, 50));
    assert_eq!(world.locked(), [all(LockKind::Write)]);
    // With its session go its locks, as of any mount.
    world.cut(0, Duration::from_secs(1), false);
    world.settle();
    world.pass(Duration::from_secs(120));
    assert_eq!(world.locked(), []);
}

#[test]
fn a_process_that_ends_leaves_no_lock_behind() {
    let (mut world, open) = with_file();
    open.lock(&mut world, 0, ONE, range(LockKind::Write, 10, 19));
    let flushed = world.ask(0, Call::Flush { node: open.node, handle: open.handle, owner: ONE });
    assert_eq!(flushed, Answer::Done);
    open.lock(&mut world, 0, OTHER, range(LockKind::Write, 15, 15));
    let flushed = world.ask(0, Call::Flush { node: open.node, handle: open.handle, owner: OTHER });
    assert_eq!(flushed, Answer::Done);
    world.pass(Duration::from_secs(2));
    assert_eq!(world.locked(), []);
}

/// One transaction of SQLite with a rollback journal and `synchronous=full`, without its syncs.
// S-45
#[test]
fn a_transaction_of_sqlite_waits_for_no_lock() {
    let (mut world, db) = with_file();
    let (pending, reserved, shared) = (1 << 30, (1 << 30) + 1, ((1 << 30) + 2, (1 << 30) + 511));
    let transaction = |world: &mut World| {
        let lock = |world: &mut World, kind, (start, end)| db.lock(world, 0, ONE, range(kind, start, end));
        lock(world, LockKind::Read, (pending, pending));
        lock(world, LockKind::Read, shared);
        lock(world, LockKind::Unlock, (pending, pending));
        lock(world, LockKind::Write, (reserved, reserved));
        let made = world.ask(0, Call::Create { parent: ROOT, name: b"j", mode: 0o644, umask: 0, how: NEW });
        let (journal, opened) = (entry(made.clone()).node, handle(made));
        assert_eq!(world.ask(0, write(journal, opened, 0, &[1; 512])), Answer::Count(512));
        lock(world, LockKind::Write, (pending, pending));
        lock(world, LockKind::Write, shared);
        assert_eq!(world.ask(0, write(db.node, db.handle, 0, &[2; 4096])), Answer::Count(4096));
        world.close(0, journal, opened);
        assert_eq!(world.ask(0, Call::Unlink { parent: ROOT, name: b"j" }), Answer::Done);
        lock(world, LockKind::Read, shared);
        lock(world, LockKind::Unlock, (pending, reserved));
        lock(world, LockKind::Unlock, (0, u64::MAX));
    };
    transaction(&mut world);
    at_once(&mut world, |world| (0..10).for_each(|_| transaction(world)));
    world.settle();
    assert_eq!(world.seats[0].client.snapshot().ahead.late, []);
}

/// A mount that keeps a journal and is not alone asks as any other.
#[test]
fn a_mount_with_company_asks_for_each_lock() {
    let mut world = World::of(1, &[journaling(), config("lease")], crate::world::STEADY);
    world.file(0, ROOT, b"db", b"data");
    let open = Open::new(&mut world, 0, b"db");
    for byte in 0..3 {
        let (answer, sent) = world.cost(0, open.set(ONE, range(LockKind::Write, byte, byte), false));
        assert_eq!((answer, sent), (Answer::Done, vec!["Lock"]));
    }
    assert_eq!(world.locked(), [range(LockKind::Write, 0, 2)]);
}
