//! What of numbered changes outlives the process.

use super::world::*;
use crate::notes::{Begun, Found, Note, Noted, Outcome};
use crate::repeat;
use crate::sessions::{ConnectionKey, Input, Job, Output, Sessions};
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
const FOUND: Found = Found { at: None, of: None, size: 12 };

/// A server that keeps notes, with what a former one has left.
struct Life {
    world: World,
    kept: Option<Noted>,
}

impl Life {
    /// Session 1 joins over connection A. Returns the number that it is told.
    fn begin(kept: Option<Noted>) -> (Life, u64) {
        let mut life = Life { world: World::with(Sessions::new(BOOT).keeping_notes()), kept };
        let number = life.join();
        (life, number)
    }

    fn join(&mut self) -> u64 {
        let mut hello = version_body(1, 1 << 20);
        hello.features = FEATURE_LEDGER;
        let outputs = self.world.receive(A, NOTAG, Request::Version(hello));
        assert_eq!(outputs, [Output::Recollect { connection: A, session: SESSION }]);
        let noted = self.kept.clone().map(Box::new);
        let outputs = self.handle(Input::Noted { connection: A, session: SESSION, noted });
        let [Output::Reply { reply: Reply::Version(answer), .. }] = outputs.as_slice() else {
            panic!("{outputs:?}");
        };
        assert!(!answer.resumed, "what was open is not");
        let number = answer.number;
        let outputs = self.world.receive(A, Tag(0), attach(b""));
        let [Output::Attach { session, .. }] = outputs.as_slice() else {
            panic!("{outputs:?}");
        };
        self.handle(Input::Attached { connection: A, session: *session, result: Ok(root()) });
        number
    }

    /// Keeps the notes among the outputs, and hands out all.
    fn keep(&mut self, outputs: Vec<Output>) -> Vec<Output> {
        for output in &outputs {
            if let Output::Note(session, note) = output {
                assert_eq!(*session, SESSION);
                self.kept.get_or_insert_default().take(note.clone());
            }
        }
        outputs
    }

    fn handle(&mut self, input: Input) -> Vec<Output> {
        let outputs = self.world.handle(input);
        self.keep(outputs)
    }

    /// The next change has this number.
    fn number(&mut self, number: u64, answered: u64) {
        let outputs = self.world.receive(A, NOTAG, Request::Number(Tnumber { number, answered }));
        assert_eq!(self.keep(outputs), [Output::Note(SESSION, Note::Answered(answered))]);
    }

    fn begins(&mut self, job: &Job) -> Vec<Output> {
        self.world.sessions.begins(job.key, &FOUND);
        let outputs = std::iter::from_fn(|| self.world.sessions.poll()).collect();
        self.keep(outputs)
    }

    fn answers(&mut self, job: &Job, reply: Reply) -> Vec<Output> {
        let outputs = self.handle(Input::Answered(job.key, reply));
        self.handle(Input::Finished(job.key));
        outputs
    }

    /// The process is killed, and another one takes its place. Returns the number that the session is told.
    fn killed(self) -> (Life, u64) {
        Life::begin(self.kept)
    }
}

fn refusal() -> Reply {
    Reply::Error(Rerror::from(Errno::Exists))
}

fn to_a(tag: Tag, reply: Reply) -> Output {
    Output::Reply { connection: A, tag, reply }
}

fn remove(path: &'static [u8]) -> Request {
    let path = TreePath::from_bytes(Bytes::from_static(path)).unwrap();
    Request::Remove(Tremove { place: Place { path, dir: None }, directory: false })
}

// S-86
#[test]
fn a_change_is_noted_before_it_begins_and_before_its_reply_leaves() {
    let (mut life, number) = Life::begin(None);
    assert_eq!(number, 0, "nothing is known of it");
    life.number(1, 1);
    let request = remove(b"f");
    let about = repeat::about(&request);
    let job = life.world.execute(A, Tag(1), request);
    let begun = Note::Begun { number: 1, begun: Begun { about, found: FOUND } };
    assert_eq!(life.begins(&job), [Output::Note(SESSION, begun)]);
    let done = Note::Done { number: 1, created: None, reply: Box::new(refusal()) };
    assert_eq!(life.answers(&job, refusal()), [Output::Note(SESSION, done), to_a(Tag(1), refusal())]);
}

// S-86
#[test]
fn a_change_that_was_done_is_answered_by_the_next_process_as_by_the_first() {
    let (mut life, _) = Life::begin(None);
    life.number(1, 1);
    for tag in 1..=2 {
        let job = life.world.execute(A, Tag(tag), put(tag.into()));
        life.answers(&job, refusal());
    }
    let (mut life, number) = life.killed();
    assert_eq!(number, 3);
    life.number(1, 1);
    for tag in 1..=2 {
        assert_eq!(life.world.receive(A, Tag(tag), put(tag.into())), [to_a(Tag(tag), refusal())]);
    }
    let job = life.world.execute(A, Tag(3), put(3));
    assert!(job.undecided.is_none(), "it is new");
}

#[test]
fn a_reply_of_another_process_tells_of_no_open_file_and_no_lease() {
    let (mut life, _) = Life::begin(None);
    life.number(1, 1);
    let job = life.world.execute(A, Tag(1), put(1));
    let stat = Stat { leased: true, ..root().root };
    let reply = |fd, stat| Reply::Put(Rput { fd, count: 4, offset: 1, before: 3, stat, dir: stat });
    let first = reply(Fd(7), Some(stat));
    assert_eq!(life.answers(&job, first.clone()).last(), Some(&to_a(Tag(1), first)));
    let noted = life.world.sessions.noted(SESSION).unwrap();
    assert_eq!(Some(&noted), life.kept.as_ref(), "a log that is written anew says the same");
    let (mut life, _) = life.killed();
    life.number(1, 1);
    let bare = reply(NOFD, Some(root().root));
    assert_eq!(life.world.receive(A, Tag(1), put(1)), [to_a(Tag(1), bare)]);
}

// S-86
#[test]
fn a_change_that_had_begun_is_undecided_and_stays_so_until_it_is_answered() {
    let (mut life, _) = Life::begin(None);
    life.number(4, 4);
    let job = life.world.execute(A, Tag(1), remove(b"f"));
    life.begins(&job);
    let about = repeat::about(&remove(b"f"));
    let first = Some(Begun { about, found: FOUND });
    for _ in 0..2 {
        let number;
        (life, number) = life.killed();
        assert_eq!(number, 4, "what is below was done");
        life.number(4, 4);
        let job = life.world.execute(A, Tag(1), remove(b"f"));
        assert_eq!(job.undecided, first);
        assert!(life.begins(&job).is_empty(), "now it finds what it may have done itself");
        let noted = life.world.sessions.noted(SESSION).unwrap();
        assert_eq!((noted.next, &noted.outcomes), (5, &life.kept.as_ref().unwrap().outcomes));
    }
    let (mut life, _) = life.killed();
    life.number(4, 4);
    let job = life.world.execute(A, Tag(1), remove(b"f"));
    life.answers(&job, refusal());
    let (_, number) = life.killed();
    assert_eq!(number, 5);
}

#[test]
fn a_client_that_forgot_its_numbers_is_not_taken_for_the_one_that_began() {
    let (mut life, _) = Life::begin(None);
    life.number(4, 4);
    let job = life.world.execute(A, Tag(1), remove(b"f"));
    life.begins(&job);
    let (mut life, _) = life.killed();
    life.number(4, 4);
    assert!(life.world.execute(A, Tag(1), remove(b"g")).undecided.is_none());
}

#[test]
fn a_change_that_only_waited_for_its_turn_is_new_to_the_next_process() {
    let (mut life, _) = Life::begin(None);
    life.number(1, 1);
    let job = life.world.execute(A, Tag(1), put(1));
    assert!(life.world.receive(A, Tag(2), put(2)).is_empty());
    life.world.handle(Input::Answered(job.key, refusal()));
    let noted = life.world.sessions.noted(SESSION).unwrap();
    assert_eq!(noted.next, 2);
    let (mut life, number) = Life::begin(Some(noted));
    assert_eq!(number, 2);
    life.number(2, 2);
    assert!(life.world.execute(A, Tag(2), put(2)).undecided.is_none());
}

#[test]
fn a_change_that_others_have_overtaken_is_not_strange_to_the_next_process() {
    let (mut life, _) = Life::begin(None);
    life.number(1, 1);
    let slow = life.world.execute(A, Tag(1), put(0));
    life.handle(Input::TurnPassed(slow.key));
    let job = life.world.execute(A, Tag(2), remove(b"f"));
    life.begins(&job);
    life.answers(&job, refusal());
    let (mut life, number) = life.killed();
    assert_eq!(number, 1, "that is where it goes on");
    life.number(1, 1);
    let outputs = life.world.receive(A, Tag(1), put(0));
    assert!(executed(&outputs).is_some(), "{outputs:?}");
}

#[test]
fn of_two_that_began_under_one_number_the_newer_counts_and_of_one_that_began_twice_what_it_found_first() {
    let begun = |about, size| Begun { about, found: Found { size, ..FOUND } };
    let take = |all: &[Begun]| {
        let mut noted = Noted::default();
        all.iter().for_each(|begun| noted.take(Note::Begun { number: 1, begun: *begun }));
        noted.outcomes.remove(&1)
    };
    assert_eq!(take(&[begun(1, 5), begun(1, 9)]), Some(Outcome::Begun(begun(1, 5))));
    assert_eq!(take(&[begun(1, 5), begun(2, 9)]), Some(Outcome::Begun(begun(2, 9))));
}

#[test]
fn a_lock_ends_with_its_process_and_is_taken_anew() {
    let Request::Lock(lock) = lock() else { panic!("no Tlock") };
    let set = || Request::Lock(Tlock { action: LockAction::Set, ..lock.clone() });
    let (mut life, _) = Life::begin(None);
    life.number(1, 1);
    let job = life.world.execute(A, Tag(1), set());
    life.answers(&job, Reply::Lock(Rlock { conflict: None, stat: None }));
    assert_eq!(life.world.sessions.noted(SESSION), life.kept);
    let job = life.world.execute(A, Tag(2), put(2));
    life.answers(&job, refusal());
    let (mut life, _) = life.killed();
    life.number(1, 1);
    let job = life.world.execute(A, Tag(1), set());
    assert!(job.undecided.is_some(), "and not answered");
    assert_eq!(life.answers(&job, refusal()).last(), Some(&to_a(Tag(1), refusal())));
    assert_eq!(life.world.receive(A, Tag(2), put(2)), [to_a(Tag(2), refusal())]);
}

/// A lock stays undecided in the notes, and the changes behind it have replies there.
// S-88
#[test]
fn a_client_that_knows_no_number_of_its_session_gets_no_reply_of_the_former_one() {
    let Request::Lock(lock) = lock() else { panic!("no Tlock") };
    let (mut life, mut number) = Life::begin(None);
    for mount in 0..4 {
        let first = if number == 0 { 1 } else { number + LEDGER_MAX };
        life.number(first, first);
        let set = Request::Lock(Tlock { action: LockAction::Set, ..lock.clone() });
        let job = life.world.execute(A, Tag(1), set);
        assert!(job.undecided.is_none(), "mount {mount}");
        life.answers(&job, Reply::Lock(Rlock { conflict: None, stat: None }));
        for tag in 2..9 {
            let job = life.world.execute(A, Tag(tag), put(tag.into()));
            assert!(job.undecided.is_none(), "mount {mount}");
            life.answers(&job, refusal());
        }
        (life, number) = life.killed();
        assert_eq!(number, first, "the lock is undecided");
    }
}

#[test]
fn the_outcome_of_a_change_that_its_client_does_not_ask_for_is_not_noted() {
    let (mut life, _) = Life::begin(None);
    life.number(1, 1);
    let late = life.world.execute(A, Tag(1), put(1));
    life.number(9, 9);
    life.answers(&late, refusal());
    let begun = Begun { about: 1, found: FOUND };
    let mut kept = life.kept.clone().unwrap();
    kept.take(Note::Begun { number: 3, begun });
    assert_eq!((kept.next, kept.answered, kept.outcomes.len()), (9, 9, 0));
    let (_, number) = Life::begin(Some(kept));
    assert_eq!(number, 9, "it is never below what was answered");
}

#[test]
fn a_session_without_any_change_is_known_once_it_was_noted() {
    let (_, number) = Life::begin(Some(Noted::default()));
    assert_eq!(number, 1);
}

#[test]
fn notes_end_with_the_session_and_with_a_connection_that_does_not_wait_for_them() {
    let (mut life, _) = Life::begin(None);
    assert!(life.handle(Input::Stop).contains(&Output::NotesEnd(SESSION)));
    let mut world = World::with(Sessions::new(BOOT).keeping_notes());
    let mut hello = version_body(1, 1 << 20);
    hello.features = FEATURE_LEDGER;
    world.receive(B, NOTAG, Request::Version(hello));
    world.handle(Input::Disconnected(B));
    let outputs = world.handle(Input::Noted { connection: B, session: SESSION, noted: None });
    assert_eq!(outputs, [Output::NotesEnd(SESSION)]);
}

#[test]
fn nothing_is_noted_of_who_does_not_number_its_changes() {
    let mut world = World::with(Sessions::new(BOOT).keeping_notes());
    let outputs = world.receive(A, NOTAG, version(1, 1 << 20));
    assert!(matches!(outputs.as_slice(), [Output::Reply { reply: Reply::Version(_), .. }]));
    let mut world = World::attached();
    world.receive(A, NOTAG, Request::Number(Tnumber { number: 1, answered: 1 }));
    let job = world.execute(A, Tag(1), put(1));
    world.sessions.begins(job.key, &FOUND);
    assert_eq!(world.handle(Input::Answered(job.key, refusal())), [to_a(Tag(1), refusal())]);
}

/// Session 1 joins over another connection: whether it is resumed, and the number that it is told.
fn joins_again(life: &mut Life, connection: u64) -> Option<(bool, u64)> {
    let mut hello = version_body(1, 1 << 20);
    hello.features = FEATURE_LEDGER;
    let connection = ConnectionKey(connection);
    life.handle(Input::Connected(connection));
    let outputs = life.world.receive(connection, NOTAG, Request::Version(hello));
    outputs.iter().find_map(|output| match output {
        Output::Reply { reply: Reply::Version(answer), .. } => Some((answer.resumed, answer.number)),
        _ => None,
    })
}

#[test]
fn a_second_connection_finds_the_session_that_the_first_has_brought() {
    let (mut life, _) = Life::begin(Some(Noted { next: 9, ..Noted::default() }));
    life.world.receive(A, Tag(1), ping());
    assert_eq!(joins_again(&mut life, 9), Some((true, 9)));
}

// S-77
#[test]
fn a_session_is_not_resumed_by_a_client_that_may_not_have_seen_that_it_began() {
    for (kept, number) in [(Some(Noted { next: 9, ..Noted::default() }), 9), (None, 1)] {
        let (mut life, _) = Life::begin(kept);
        // The answers to the first handshake were lost: its client believes in what it had open in the session before.
        assert_eq!(joins_again(&mut life, 9), Some((false, number)));
        assert_eq!(joins_again(&mut life, 10), Some((false, number)), "this one did not attach");
    }
}
