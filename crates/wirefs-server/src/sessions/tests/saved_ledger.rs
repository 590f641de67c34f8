//! Numbered changes across restarts of the server's process.

use super::world::*;
use crate::repeat;
use crate::saved_ledger::{LedgerRecord, PriorState, SavedLedger, SavedOutcome, StartedChange};
use crate::sessions::{ConnectionKey, Job, ServerInput, ServerOutput, Sessions};
use bytes::Bytes;
use wirefs_op::limits::LEDGER_MAX;
use wirefs_op::message::error::Rerror;
use wirefs_op::message::lock::{LockAction, Rlock, Tlock};
use wirefs_op::message::number::Tnumber;
use wirefs_op::message::put::Rput;
use wirefs_op::message::remove::Tremove;
use wirefs_op::message::target::{Fd, NOFD, Place};
use wirefs_op::message::version::{FEATURE_LEDGER, SessionId};
use wirefs_op::{Errno, NOTAG, Reply, Request, Stat, Tag, TreePath};

const SESSION: SessionId = SessionId([1; 16]);
const PRIOR: PriorState = PriorState { named: None, object: None, size: 12 };

/// A server that saves ledgers, with the saved ledger of session 1.
struct ServerRun {
    world: World,
    saved: Option<SavedLedger>,
}

impl ServerRun {
    /// Session 1 attaches over connection A. Returns the number in Rversion.
    fn begin(saved: Option<SavedLedger>) -> (ServerRun, u64) {
        let mut server = ServerRun { world: World::with(Sessions::new(BOOT).saving_ledgers()), saved };
        let number = server.join();
        (server, number)
    }

    fn join(&mut self) -> u64 {
        let mut hello = version_body(1, 1 << 20);
        hello.features = FEATURE_LEDGER;
        let outputs = self.world.receive(A, NOTAG, Request::Version(hello));
        assert_eq!(outputs, [ServerOutput::LoadLedger { connection: A, session: SESSION }]);
        let saved = self.saved.clone().map(Box::new);
        let outputs = self.handle(ServerInput::LedgerLoaded { connection: A, session: SESSION, saved });
        let [ServerOutput::Reply { reply: Reply::Version(answer), .. }] = outputs.as_slice() else {
            panic!("{outputs:?}");
        };
        assert!(!answer.resumed, "open files are lost");
        let number = answer.number;
        let outputs = self.world.receive(A, Tag(0), attach(b""));
        let [ServerOutput::Attach { session, .. }] = outputs.as_slice() else {
            panic!("{outputs:?}");
        };
        self.handle(ServerInput::Attached { connection: A, session: *session, result: Ok(root()) });
        number
    }

    /// Saves the records in the outputs, and returns all outputs.
    fn keep(&mut self, outputs: Vec<ServerOutput>) -> Vec<ServerOutput> {
        for output in &outputs {
            if let ServerOutput::AppendLedger(session, record) = output {
                assert_eq!(*session, SESSION);
                self.saved.get_or_insert_default().apply(record.clone());
            }
        }
        outputs
    }

    fn handle(&mut self, input: ServerInput) -> Vec<ServerOutput> {
        let outputs = self.world.handle(input);
        self.keep(outputs)
    }

    /// Announces the number of the next change.
    fn number(&mut self, number: u64, answered: u64) {
        let outputs = self.world.receive(A, NOTAG, Request::Number(Tnumber { number, answered }));
        assert_eq!(
            self.keep(outputs),
            [ServerOutput::AppendLedger(SESSION, LedgerRecord::Acknowledged(answered))]
        );
    }

    fn record_prior_state(&mut self, job: &Job) -> Vec<ServerOutput> {
        self.world.sessions.record_prior_state(job.key, &PRIOR);
        let outputs = std::iter::from_fn(|| self.world.sessions.poll()).collect();
        self.keep(outputs)
    }

    fn answers(&mut self, job: &Job, reply: Reply) -> Vec<ServerOutput> {
        let outputs = self.handle(ServerInput::Answered(job.key, reply));
        self.handle(ServerInput::Finished(job.key));
        outputs
    }

    /// Kills the process and starts another one. Returns the number in Rversion.
    fn killed(self) -> (ServerRun, u64) {
        ServerRun::begin(self.saved)
    }
}

fn refusal() -> Reply {
    Reply::Error(Rerror::from(Errno::Exists))
}

fn to_a(tag: Tag, reply: Reply) -> ServerOutput {
    ServerOutput::Reply { connection: A, tag, reply }
}

fn remove(path: &'static [u8]) -> Request {
    let path = TreePath::from_bytes(Bytes::from_static(path)).unwrap();
    Request::Remove(Tremove { place: Place { path, dir: None }, directory: false })
}

// S-86
#[test]
fn a_change_is_recorded_before_it_starts_and_before_its_reply() {
    let (mut server, number) = ServerRun::begin(None);
    assert_eq!(number, 0, "the session is unknown");
    server.number(1, 1);
    let request = remove(b"f");
    let fingerprint = repeat::fingerprint(&request);
    let job = server.world.execute(A, Tag(1), request);
    let started = LedgerRecord::Started { number: 1, started: StartedChange { fingerprint, prior: PRIOR } };
    assert_eq!(server.record_prior_state(&job), [ServerOutput::AppendLedger(SESSION, started)]);
    let done = LedgerRecord::Done { number: 1, created: None, reply: Box::new(refusal()) };
    assert_eq!(
        server.answers(&job, refusal()),
        [ServerOutput::AppendLedger(SESSION, done), to_a(Tag(1), refusal())]
    );
}

// S-86
#[test]
fn a_completed_change_gets_the_same_reply_from_the_next_process() {
    let (mut server, _) = ServerRun::begin(None);
    server.number(1, 1);
    for tag in 1..=2 {
        let job = server.world.execute(A, Tag(tag), put(tag.into()));
        server.answers(&job, refusal());
    }
    let (mut server, number) = server.killed();
    assert_eq!(number, 3);
    server.number(1, 1);
    for tag in 1..=2 {
        assert_eq!(server.world.receive(A, Tag(tag), put(tag.into())), [to_a(Tag(tag), refusal())]);
    }
    let job = server.world.execute(A, Tag(3), put(3));
    assert!(job.undecided.is_none(), "it is new");
}

#[test]
fn a_reply_of_another_process_has_no_fd_and_no_lease() {
    let (mut server, _) = ServerRun::begin(None);
    server.number(1, 1);
    let job = server.world.execute(A, Tag(1), put(1));
    let stat = Stat { leased: true, ..root().root };
    let reply = |fd, stat| Reply::Put(Rput { fd, count: 4, offset: 1, before: 3, stat, dir: stat });
    let first = reply(Fd(7), Some(stat));
    assert_eq!(server.answers(&job, first.clone()).last(), Some(&to_a(Tag(1), first)));
    let saved = server.world.sessions.saved_ledger(SESSION).unwrap();
    assert_eq!(Some(&saved), server.saved.as_ref(), "the compacted log is equal");
    let (mut server, _) = server.killed();
    server.number(1, 1);
    let bare = reply(NOFD, Some(root().root));
    assert_eq!(server.world.receive(A, Tag(1), put(1)), [to_a(Tag(1), bare)]);
}

// S-86
#[test]
fn a_started_change_is_undecided_until_its_reply() {
    let (mut server, _) = ServerRun::begin(None);
    server.number(4, 4);
    let job = server.world.execute(A, Tag(1), remove(b"f"));
    server.record_prior_state(&job);
    let fingerprint = repeat::fingerprint(&remove(b"f"));
    let first = Some(StartedChange { fingerprint, prior: PRIOR });
    for _ in 0..2 {
        let number;
        (server, number) = server.killed();
        assert_eq!(number, 4, "lower numbers are done");
        server.number(4, 4);
        let job = server.world.execute(A, Tag(1), remove(b"f"));
        assert_eq!(job.undecided, first);
        assert!(server.record_prior_state(&job).is_empty(), "its own effects must not be recorded");
        let saved = server.world.sessions.saved_ledger(SESSION).unwrap();
        assert_eq!((saved.next, &saved.outcomes), (5, &server.saved.as_ref().unwrap().outcomes));
    }
    let (mut server, _) = server.killed();
    server.number(4, 4);
    let job = server.world.execute(A, Tag(1), remove(b"f"));
    server.answers(&job, refusal());
    let (_, number) = server.killed();
    assert_eq!(number, 5);
}

#[test]
fn a_change_with_another_fingerprint_is_new() {
    let (mut server, _) = ServerRun::begin(None);
    server.number(4, 4);
    let job = server.world.execute(A, Tag(1), remove(b"f"));
    server.record_prior_state(&job);
    let (mut server, _) = server.killed();
    server.number(4, 4);
    assert!(server.world.execute(A, Tag(1), remove(b"g")).undecided.is_none());
}

#[test]
fn a_queued_change_is_new_to_the_next_process() {
    let (mut server, _) = ServerRun::begin(None);
    server.number(1, 1);
    let job = server.world.execute(A, Tag(1), put(1));
    assert!(server.world.receive(A, Tag(2), put(2)).is_empty());
    server.world.handle(ServerInput::Answered(job.key, refusal()));
    let saved = server.world.sessions.saved_ledger(SESSION).unwrap();
    assert_eq!(saved.next, 2);
    let (mut server, number) = ServerRun::begin(Some(saved));
    assert_eq!(number, 2);
    server.number(2, 2);
    assert!(server.world.execute(A, Tag(2), put(2)).undecided.is_none());
}

#[test]
fn an_overtaken_change_is_known_to_the_next_process() {
    let (mut server, _) = ServerRun::begin(None);
    server.number(1, 1);
    let slow = server.world.execute(A, Tag(1), put(0));
    server.handle(ServerInput::SlotReleased(slow.key));
    let job = server.world.execute(A, Tag(2), remove(b"f"));
    server.record_prior_state(&job);
    server.answers(&job, refusal());
    let (mut server, number) = server.killed();
    assert_eq!(number, 1, "the first unfinished change");
    server.number(1, 1);
    let outputs = server.world.receive(A, Tag(1), put(0));
    assert!(executed(&outputs).is_some(), "{outputs:?}");
}

#[test]
fn first_start_counts_for_a_repeated_change_and_last_for_a_reused_number() {
    let started = |fingerprint, size| StartedChange { fingerprint, prior: PriorState { size, ..PRIOR } };
    let take = |all: &[StartedChange]| {
        let mut saved = SavedLedger::default();
        all.iter().for_each(|started| saved.apply(LedgerRecord::Started { number: 1, started: *started }));
        saved.outcomes.remove(&1)
    };
    assert_eq!(take(&[started(1, 5), started(1, 9)]), Some(SavedOutcome::Started(started(1, 5))));
    assert_eq!(take(&[started(1, 5), started(2, 9)]), Some(SavedOutcome::Started(started(2, 9))));
}

#[test]
fn a_lock_ends_with_its_process_and_is_taken_anew() {
    let Request::Lock(lock) = lock() else { panic!("no Tlock") };
    let set = || Request::Lock(Tlock { action: LockAction::Set, ..lock.clone() });
    let (mut server, _) = ServerRun::begin(None);
    server.number(1, 1);
    let job = server.world.execute(A, Tag(1), set());
    server.answers(&job, Reply::Lock(Rlock { conflict: None, stat: None }));
    assert_eq!(server.world.sessions.saved_ledger(SESSION), server.saved);
    let job = server.world.execute(A, Tag(2), put(2));
    server.answers(&job, refusal());
    let (mut server, _) = server.killed();
    server.number(1, 1);
    let job = server.world.execute(A, Tag(1), set());
    assert!(job.undecided.is_some(), "it must be executed");
    assert_eq!(server.answers(&job, refusal()).last(), Some(&to_a(Tag(1), refusal())));
    assert_eq!(server.world.receive(A, Tag(2), put(2)), [to_a(Tag(2), refusal())]);
}

/// A lock stays undecided in the ledger, and later changes have replies there.
// S-88
#[test]
fn a_client_without_numbers_gets_no_reply_of_its_predecessor() {
    let Request::Lock(lock) = lock() else { panic!("no Tlock") };
    let (mut server, mut number) = ServerRun::begin(None);
    for mount in 0..4 {
        let first = if number == 0 { 1 } else { number + LEDGER_MAX };
        server.number(first, first);
        let set = Request::Lock(Tlock { action: LockAction::Set, ..lock.clone() });
        let job = server.world.execute(A, Tag(1), set);
        assert!(job.undecided.is_none(), "mount {mount}");
        server.answers(&job, Reply::Lock(Rlock { conflict: None, stat: None }));
        for tag in 2..9 {
            let job = server.world.execute(A, Tag(tag), put(tag.into()));
            assert!(job.undecided.is_none(), "mount {mount}");
            server.answers(&job, refusal());
        }
        (server, number) = server.killed();
        assert_eq!(number, first, "the lock is undecided");
    }
}

#[test]
fn the_reply_to_an_acknowledged_change_is_not_recorded() {
    let (mut server, _) = ServerRun::begin(None);
    server.number(1, 1);
    let late = server.world.execute(A, Tag(1), put(1));
    server.number(9, 9);
    server.answers(&late, refusal());
    let started = StartedChange { fingerprint: 1, prior: PRIOR };
    let mut saved = server.saved.clone().unwrap();
    saved.apply(LedgerRecord::Started { number: 3, started });
    assert_eq!((saved.next, saved.answered, saved.outcomes.len()), (9, 9, 0));
    let (_, number) = ServerRun::begin(Some(saved));
    assert_eq!(number, 9, "it is never below what was answered");
}

#[test]
fn a_session_without_changes_is_known_once_it_was_saved() {
    let (_, number) = ServerRun::begin(Some(SavedLedger::default()));
    assert_eq!(number, 1);
}

#[test]
fn ledger_is_closed_with_the_session_and_with_a_lost_connection() {
    let (mut server, _) = ServerRun::begin(None);
    assert!(server.handle(ServerInput::Stop).contains(&ServerOutput::LedgerClosed(SESSION)));
    let mut world = World::with(Sessions::new(BOOT).saving_ledgers());
    let mut hello = version_body(1, 1 << 20);
    hello.features = FEATURE_LEDGER;
    world.receive(B, NOTAG, Request::Version(hello));
    world.handle(ServerInput::Disconnected(B));
    let outputs = world.handle(ServerInput::LedgerLoaded { connection: B, session: SESSION, saved: None });
    assert_eq!(outputs, [ServerOutput::LedgerClosed(SESSION)]);
}

#[test]
fn changes_without_numbers_are_not_recorded() {
    let mut world = World::with(Sessions::new(BOOT).saving_ledgers());
    let outputs = world.receive(A, NOTAG, version(1, 1 << 20));
    assert!(matches!(outputs.as_slice(), [ServerOutput::Reply { reply: Reply::Version(_), .. }]));
    let mut world = World::attached();
    world.receive(A, NOTAG, Request::Number(Tnumber { number: 1, answered: 1 }));
    let job = world.execute(A, Tag(1), put(1));
    world.sessions.record_prior_state(job.key, &PRIOR);
    assert_eq!(world.handle(ServerInput::Answered(job.key, refusal())), [to_a(Tag(1), refusal())]);
}

/// Session 1 connects again. Returns whether it was resumed, and the number in Rversion.
fn joins_again(server: &mut ServerRun, connection: u64) -> Option<(bool, u64)> {
    let mut hello = version_body(1, 1 << 20);
    hello.features = FEATURE_LEDGER;
    let connection = ConnectionKey(connection);
    server.handle(ServerInput::Connected(connection));
    let outputs = server.world.receive(connection, NOTAG, Request::Version(hello));
    outputs.iter().find_map(|output| match output {
        ServerOutput::Reply { reply: Reply::Version(answer), .. } => Some((answer.resumed, answer.number)),
        _ => None,
    })
}

#[test]
fn a_second_connection_resumes_the_loaded_session() {
    let (mut server, _) = ServerRun::begin(Some(SavedLedger { next: 9, ..SavedLedger::default() }));
    server.world.receive(A, Tag(1), ping());
    assert_eq!(joins_again(&mut server, 9), Some((true, 9)));
}

// S-77
#[test]
fn a_session_is_not_resumed_by_a_client_that_may_not_know_it() {
    for (saved, number) in [(Some(SavedLedger { next: 9, ..SavedLedger::default() }), 9), (None, 1)] {
        let (mut server, _) = ServerRun::begin(saved);
        // The first handshake was cut off: the client still relies on the open files of the session before.
        assert_eq!(joins_again(&mut server, 9), Some((false, number)));
        assert_eq!(joins_again(&mut server, 10), Some((false, number)), "this one did not attach");
    }
}
