//! Transactions of SQLite with `synchronous=full` on a mount that is alone: what they wait for. Each call is one that SQLite makes.

use crate::ahead::{at_once, lone};
use crate::config;
use crate::deeds::{NEW, READ_WRITE, entry, handle, write};
use crate::world::World;
use std::time::Duration;
use wirefs_client::call::{Answer, Call, Handle, ROOT, TreeNodeId};
use wirefs_op::message::put::PutMode;
use wirefs_op::{Errno, LockFamily, LockKind, LockRange, Request, SetStat};

const ROUND_TRIP: Duration = Duration::from_millis(100);
const PENDING: u64 = 0x4000_0000;
const RESERVED: u64 = PENDING + 1;
const SHARED: (u64, u64) = (PENDING + 2, PENDING + 511);
const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// How a transaction is committed: what becomes of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Delete,
    Truncate,
    Persist,
}

struct Database {
    node: TreeNodeId,
    handle: Handle,
    journal: Option<(TreeNodeId, Handle)>,
}

fn ask(world: &mut World, call: Call<'_>) {
    let answer = world.ask(0, call);
    assert!(matches!(answer, Answer::Done | Answer::Count(_) | Answer::Attr(..)), "{answer:?}");
}

fn fsync(world: &mut World, (node, handle): (TreeNodeId, Handle)) -> Duration {
    let began = world.now;
    ask(world, Call::Fsync { node, handle, data_only: true });
    world.now.since(began)
}

fn fsync_root(world: &mut World) -> Duration {
    let (opened, began) = (handle(world.ask(0, Call::Opendir { node: ROOT })), world.now);
    ask(world, Call::Fsyncdir { node: ROOT, handle: opened, data_only: true });
    let waited = world.now.since(began);
    ask(world, Call::Releasedir { node: ROOT, handle: opened });
    waited
}

/// A header of the journal, before what follows it is on the disk.
fn header() -> Vec<u8> {
    let mut header = vec![0; 12];
    header.extend([9, 9, 9, 9, 0, 0, 0, 1]);
    header.extend(512_u32.to_be_bytes());
    header.extend(4096_u32.to_be_bytes());
    header.resize(512, 0);
    header
}

impl Database {
    fn of(world: &mut World) -> Database {
        world.file(0, ROOT, b"db", &[1; 4096]);
        world.settle();
        let node = world.lookup(0, ROOT, b"db");
        let handle = handle(world.ask(0, Call::Open { node, how: READ_WRITE }));
        world.settle();
        Database { node, handle, journal: None }
    }

    fn lock(&self, world: &mut World, kind: LockKind, (start, end): (u64, u64)) {
        let range = LockRange { kind, start, end, pid: 0 };
        let (node, handle) = (self.node, self.handle);
        let family = LockFamily::Posix;
        ask(world, Call::Setlk { node, handle, owner: 1, family, range, wait: false });
    }

    fn lock_for_writing(&self, world: &mut World) {
        self.lock(world, LockKind::Read, SHARED);
        self.lock(world, LockKind::Write, (RESERVED, RESERVED));
    }

    fn lock_all(&self, world: &mut World) {
        self.lock(world, LockKind::Write, (PENDING, PENDING));
        self.lock(world, LockKind::Write, SHARED);
    }

    fn open_journal(&mut self, world: &mut World) -> (TreeNodeId, Handle) {
        let create = Call::Create { parent: ROOT, name: b"db-journal", mode: 0o644, umask: 0, how: NEW };
        *self.journal.get_or_insert_with(|| {
            let made = world.ask(0, create);
            (entry(made.clone()).node, handle(made))
        })
    }

    /// Writes the journal and brings it to the disk: how long both syncs of it waited, and that of its directory.
    fn journal(&mut self, world: &mut World) -> [Duration; 3] {
        let is_new = self.journal.is_none();
        let (node, handle) = self.open_journal(world);
        ask(world, write(node, handle, 0, &header()));
        ask(world, write(node, handle, 512, &[2; 4104]));
        self.lock_all(world);
        let first = fsync(world, (node, handle));
        let directory = if is_new { fsync_root(world) } else { Duration::ZERO };
        let mut count = MAGIC.to_vec();
        count.extend(1_u32.to_be_bytes());
        ask(world, write(node, handle, 0, &count));
        [first, directory, fsync(world, (node, handle))]
    }

    /// The commit itself: how long it waited.
    fn commit(&mut self, world: &mut World, mode: Mode) -> Duration {
        let began = world.now;
        let (node, handle) = self.open_journal(world);
        match mode {
            Mode::Delete => {
                world.close(0, node, handle);
                ask(world, Call::Unlink { parent: ROOT, name: b"db-journal" });
                self.journal = None;
                return world.now.since(began);
            }
            Mode::Truncate => {
                let set = SetStat { size: Some(0), ..SetStat::default() };
                ask(world, Call::Setattr { node, handle: Some(handle), set, kill_privileges: false });
            }
            Mode::Persist => ask(world, write(node, handle, 0, &[0; 28])),
        }
        fsync(world, (node, handle))
    }

    fn transaction(&mut self, world: &mut World, mode: Mode) {
        self.lock_for_writing(world);
        let waited = self.journal(world);
        assert_eq!(waited, [Duration::ZERO; 3], "{mode:?}");
        ask(world, write(self.node, self.handle, 0, &[3; 4096]));
        assert_eq!(fsync(world, (self.node, self.handle)), ROUND_TRIP, "the database is on the disk");
        let commits = if mode == Mode::Delete { Duration::ZERO } else { ROUND_TRIP };
        assert_eq!(self.commit(world, mode), commits, "{mode:?}");
        self.lock(world, LockKind::Unlock, (0, u64::MAX));
    }

    /// One that goes before others: the directory was not synced before.
    fn first_transaction(&mut self, world: &mut World, mode: Mode) {
        self.lock_for_writing(world);
        assert_eq!(self.journal(world), [Duration::ZERO, ROUND_TRIP, Duration::ZERO], "{mode:?}");
        ask(world, write(self.node, self.handle, 0, &[3; 4096]));
        fsync(world, (self.node, self.handle));
        self.commit(world, mode);
        self.lock(world, LockKind::Unlock, (0, u64::MAX));
    }
}

fn is_barrier(request: &Request) -> bool {
    matches!(request, Request::Put(put) if put.is_barrier())
}

// S-21
#[test]
fn a_transaction_waits_for_the_database_and_for_its_commit_and_not_for_the_journal() {
    for mode in [Mode::Delete, Mode::Truncate, Mode::Persist] {
        let mut world = lone();
        let mut database = Database::of(&mut world);
        database.first_transaction(&mut world, mode);
        let began = world.now;
        // So many that the lock of the file need not be asked for again.
        for _ in 0..10 {
            database.transaction(&mut world, mode);
        }
        let each = if mode == Mode::Delete { 1 } else { 2 };
        assert_eq!(world.now.since(began), ROUND_TRIP * 10 * each, "{mode:?}");
        world.settle();
        assert_eq!(world.seats[0].client.snapshot().ahead.late, []);
    }
}

// S-21 S-22
#[test]
fn what_was_not_waited_for_is_in_the_line_between_the_journal_and_the_database() {
    let mut world = lone();
    let mut database = Database::of(&mut world);
    database.first_transaction(&mut world, Mode::Delete);
    world.settle();
    let line = &world.line;
    let is_write = |request: &Request, name: &[u8]| {
        matches!(request, Request::Put(put)
            if put.mode.has(PutMode::DATA) && put.target.path.as_bytes() == name)
    };
    let barriers: Vec<usize> = (0..line.len()).filter(|at| is_barrier(&line[*at])).collect();
    let [contents, header] = barriers[..] else { panic!("{line:?}") };
    let written: Vec<usize> = (0..line.len()).filter(|at| is_write(&line[*at], b"db-journal")).collect();
    assert!(written[..2].iter().all(|at| *at < contents), "{line:?}");
    assert!(contents < written[2] && written[2] < header && written.len() == 3, "{line:?}");
    let overwritten = (0..line.len()).rev().find(|at| is_write(&line[*at], b"db")).unwrap();
    assert!(header < overwritten);
}

/// A database with a transaction that is written, and nothing of it sent back by the server yet.
fn with_transaction() -> (World, Database) {
    let mut world = lone();
    let mut database = Database::of(&mut world);
    database.first_transaction(&mut world, Mode::Delete);
    world.settle();
    database.lock_for_writing(&mut world);
    assert_eq!(database.journal(&mut world), [Duration::ZERO; 3]);
    ask(&mut world, write(database.node, database.handle, 0, &[4; 4096]));
    (world, database)
}

fn is_write_of(request: &Request, letter: u8) -> bool {
    matches!(request, Request::Put(put) if put.data.0.len() == 4096 && put.data.0.first() == Some(&letter))
}

fn fails(world: &mut World, database: &Database) {
    let (node, handle) = (database.node, database.handle);
    assert_eq!(world.ask(0, Call::Fsync { node, handle, data_only: true }), Answer::Fail(Errno::Io));
}

// S-22
#[test]
fn a_journal_that_the_disk_does_not_take_keeps_the_database_as_it_was_and_its_next_sync_fails() {
    let (mut world, mut database) = with_transaction();
    world.is_disk_broken = true;
    fails(&mut world, &database);
    world.is_disk_broken = false;
    assert!(!world.line.iter().any(|request| is_write_of(request, 4)), "{:?}", world.line);
    world.settle();
    // What is written from now on does not rely on it.
    world.ask(0, Call::Fsync { node: database.node, handle: database.handle, data_only: true });
    ask(&mut world, write(database.node, database.handle, 0, &[5; 4096]));
    assert_eq!(fsync(&mut world, (database.node, database.handle)), ROUND_TRIP);
    assert!(world.line.iter().any(|request| is_write_of(request, 5)));
    let (node, handle) = database.open_journal(&mut world);
    let told = world.ask(0, Call::Fsync { node, handle, data_only: true });
    assert_eq!(told, Answer::Fail(Errno::Io));
    database.commit(&mut world, Mode::Delete);
    assert!(!world.seats[0].client.snapshot().ahead.late.is_empty());
}

// S-22
#[test]
fn a_barrier_goes_out_again_at_its_place_when_the_connection_breaks() {
    let (mut world, database) = with_transaction();
    world.cut(0, Duration::from_millis(500), true);
    assert!(fsync(&mut world, (database.node, database.handle)) >= ROUND_TRIP);
    world.settle();
    let barrier = world.line.iter().rposition(is_barrier).unwrap();
    let written = world.line.iter().position(|request| is_write_of(request, 4)).unwrap();
    assert!(barrier < written, "{:?}", world.line);
    assert_eq!(world.seats[0].client.snapshot().ahead.late, []);
}

// S-22
#[test]
fn what_is_behind_a_barrier_is_not_sent_to_a_server_that_may_have_lost_what_was_before_it() {
    let (mut world, database) = with_transaction();
    world.cut(0, Duration::from_millis(500), false);
    world.pass(Duration::from_secs(1));
    fails(&mut world, &database);
    assert!(!world.line.iter().any(|request| is_write_of(request, 4)), "{:?}", world.line);
}

// S-21
#[test]
fn a_journal_whose_database_is_not_locked_or_not_there_is_waited_for() {
    let mut world = lone();
    let mut database = Database::of(&mut world);
    let (node, handle) = database.open_journal(&mut world);
    let sync = |world: &mut World| {
        ask(world, write(node, handle, 0, &header()));
        fsync(world, (node, handle))
    };
    assert_eq!(sync(&mut world), ROUND_TRIP);
    // Who only wants to write has not got it for himself.
    database.lock_for_writing(&mut world);
    assert_eq!(sync(&mut world), ROUND_TRIP);
    database.lock_all(&mut world);
    at_once(&mut world, |world| sync(world));
    database.lock(&mut world, LockKind::Unlock, (0, u64::MAX));
    assert_eq!(sync(&mut world), ROUND_TRIP);
    database.lock_for_writing(&mut world);
    database.lock_all(&mut world);
    let rename = Call::Rename { parent: ROOT, name: b"db", to_parent: ROOT, to_name: b"other", flags: 0 };
    ask(&mut world, rename);
    assert_eq!(sync(&mut world), ROUND_TRIP);
}

// S-21
#[test]
fn other_names_of_the_directory_are_waited_for_and_other_files_too() {
    let mut world = lone();
    let mut database = Database::of(&mut world);
    database.first_transaction(&mut world, Mode::Delete);
    database.lock_for_writing(&mut world);
    let made =
        world.ask(0, Call::Create { parent: ROOT, name: b"db-mj1A2B3C4D", mode: 0o644, umask: 0, how: NEW });
    let other = (entry(made.clone()).node, handle(made));
    ask(&mut world, write(other.0, other.1, 0, &header()));
    assert_eq!(database.journal(&mut world), [Duration::ZERO, ROUND_TRIP, Duration::ZERO]);
    assert_eq!(fsync(&mut world, other), ROUND_TRIP);
    ask(&mut world, Call::Unlink { parent: ROOT, name: b"db-mj1A2B3C4D" });
    assert_eq!(fsync_root(&mut world), ROUND_TRIP);
}

// S-21
#[test]
fn a_mount_that_has_company_waits_for_each_sync() {
    let mut world = lone();
    world.another(config("lease"));
    world.settle();
    let mut database = Database::of(&mut world);
    database.lock_for_writing(&mut world);
    assert_eq!(database.journal(&mut world), [ROUND_TRIP; 3]);
    assert_eq!(fsync(&mut world, (database.node, database.handle)), ROUND_TRIP);
}
