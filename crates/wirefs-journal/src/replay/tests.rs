use super::*;
use crate::change::tests::{remove, write};
use proptest::prelude::*;
use wirefs_op::limits::LEDGER_MAX;
use wirefs_op::message::commit::Rcommit;
use wirefs_op::message::error::Rerror;
use wirefs_op::message::put::Rput;
use wirefs_op::message::target::NOFD;

const BOOT: BootId = BootId(3);

/// A server that counts as PROTOCOL.md says, and refuses to write to `no…`.
#[derive(Default)]
struct Server {
    next: Option<u64>,
    told: u64,
    /// Numbers and paths of what was carried out.
    done: Vec<(u64, Vec<u8>)>,
    /// The number above all that it has seen.
    seen: u64,
    replies: VecDeque<Bytes>,
    committed: bool,
}

impl Server {
    fn take(&mut self, frame: Frame) {
        let (tag, request) = Request::decode(frame.to_body()).unwrap();
        match request {
            Request::Number(told) => {
                assert!(told.answered <= told.number && told.answered >= self.told);
                assert!(told.number - told.answered < LEDGER_MAX);
                self.next = Some(told.number);
                self.told = told.answered;
            }
            Request::Commit(commit) => {
                assert_eq!(commit.scope, CommitScope::Filesystem);
                assert!(self.replies.is_empty(), "a commit before all is answered");
                self.committed = true;
                self.reply(tag, Reply::Commit(Rcommit { boot: BOOT }));
            }
            Request::Put(put) => {
                let number = self.next.expect("a number");
                assert!(number < self.told + LEDGER_MAX, "too far ahead");
                assert_eq!(put.target.fd, NOFD);
                self.next = Some(number + 1);
                let path = put.target.path.as_bytes().to_vec();
                let is_refused = path.starts_with(b"no");
                if number >= self.seen {
                    self.seen = number + 1;
                    self.done.push((number, path));
                }
                self.reply(tag, if is_refused { refusal() } else { written() });
            }
            other => panic!("{other:?}"),
        }
    }

    fn reply(&mut self, tag: Tag, reply: Reply) {
        self.replies.push_back(reply.encode(tag).to_body());
    }
}

fn refusal() -> Reply {
    Reply::Error(Rerror::from(Errno::NoSpace))
}

fn written() -> Reply {
    Reply::Put(Rput { fd: NOFD, count: 4, offset: 7, before: 1, stat: None, dir: None })
}

fn record(number: u64, name: &str) -> Record {
    Record { number, body: Request::Put(write(name, "text")).encode(NOTAG).to_body() }
}

fn terms(ledger: u64) -> Terms {
    Terms { ledger: Some(ledger), boot: BOOT }
}

/// Replays all, the server answering `lag` changes behind. What was refused, and how it ended.
fn run(mut replay: Replay, records: Vec<Record>, server: &mut Server, lag: usize) -> (Vec<Refused>, Outcome) {
    let mut refused = Vec::new();
    let mut records = records.into_iter().peekable();
    loop {
        while let Some(action) = replay.poll() {
            match action {
                Action::Send(frame) => server.take(frame),
                Action::Refused(what) => refused.push(what),
                Action::Done(outcome) => {
                    assert_eq!(replay.under_way(), 0);
                    return (refused, outcome);
                }
                Action::Unsafe(errno) => panic!("{errno}"),
            }
        }
        let may_lag = replay.has_room() && server.replies.len() < lag;
        match (records.peek().is_some(), replay.has_room(), may_lag || server.replies.is_empty()) {
            (true, true, true) => replay.handle(Event::Record(records.next().unwrap())).unwrap(),
            (false, true, _) => replay.handle(Event::End).unwrap(),
            _ => replay.handle(Event::Received(server.replies.pop_front().expect("a reply"))).unwrap(),
        }
    }
}

#[test]
fn what_the_server_has_seen_is_skipped_and_the_rest_is_sent_in_order() {
    let mut server = Server { seen: 3, ..Server::default() };
    let records = [1, 2, 3, 4, 9, 10].map(|number| record(number, "file")).to_vec();
    let (refused, outcome) = run(Replay::new(terms(3), true, None).unwrap(), records, &mut server, 10);
    let numbers: Vec<u64> = server.done.iter().map(|(number, _)| *number).collect();
    assert_eq!((numbers, refused.len()), (vec![3, 4, 9, 10], 0));
    assert_eq!(outcome, Outcome { sent: 4, skipped: 2, ..Outcome::default() });
    assert!(server.committed);
}

#[test]
fn a_change_that_is_refused_is_told_and_those_behind_it_go_on() {
    let mut server = Server::default();
    let records = vec![record(1, "one"), record(2, "no room"), record(3, "three")];
    let (refused, outcome) =
        run(Replay::new(terms(0), false, None).unwrap(), records.clone(), &mut server, 10);
    let [Refused { record, errno: Errno::NoSpace, .. }] = &refused[..] else { panic!("{refused:?}") };
    assert_eq!(*record, records[1]);
    assert_eq!((outcome.sent, outcome.refused, server.done.len()), (2, 1, 3));
}

#[test]
fn a_reply_that_the_mount_did_not_get_is_had() {
    // Number 2 was carried out and refused, and who asked is dead.
    let mut server = Server { seen: 4, told: 2, ..Server::default() };
    let records = vec![record(1, "one"), record(2, "no room"), record(3, "three"), record(4, "four")];
    let replay = Replay::new(terms(4), true, Some(2)).unwrap();
    let (refused, outcome) = run(replay, records, &mut server, 10);
    assert_eq!((refused.len(), outcome.skipped, outcome.sent), (1, 2, 1));
    assert_eq!(server.done, [(4, b"four".to_vec())]);
}

#[test]
fn nothing_is_sent_to_a_server_that_no_longer_knows_what_it_has_done() {
    assert_eq!(Replay::new(terms(0), true, None).unwrap_err(), Unfit::Unknown);
    assert!(Replay::new(terms(0), false, None).is_ok());
    let without = Terms { ledger: None, boot: BOOT };
    assert_eq!(Replay::new(without, false, None).unwrap_err(), Unfit::NoLedger);
}

#[test]
fn a_journal_of_which_nothing_is_left_to_do_is_committed_all_the_same() {
    let mut server = Server::default();
    let (_, outcome) = run(Replay::new(terms(5), true, None).unwrap(), vec![record(4, "x")], &mut server, 1);
    assert_eq!((outcome.skipped, server.done.len(), server.committed), (1, 0, true));
}

/// A replay that has sent one change and got its reply, at its commit, and the commit's tag.
fn committing() -> Replay {
    let mut replay = Replay::new(terms(0), false, None).unwrap();
    replay.handle(Event::End).unwrap();
    assert!(matches!(replay.poll(), Some(Action::Send(_))));
    replay
}

fn answer(replay: &mut Replay, tag: Tag, reply: Reply) -> Result<(), Malformed> {
    replay.handle(Event::Received(reply.encode(tag).to_body()))
}

#[test]
fn a_disk_that_fails_is_told() {
    let mut replay = committing();
    answer(&mut replay, COMMIT, Reply::Error(Rerror::from(Errno::Io))).unwrap();
    assert_eq!(replay.poll(), Some(Action::Unsafe(Errno::Io)));
}

#[test]
fn a_server_that_was_started_again_meanwhile_has_committed_nothing() {
    let mut replay = committing();
    assert!(answer(&mut replay, COMMIT, Reply::Commit(Rcommit { boot: BootId(4) })).is_err());
}

#[test]
fn a_reply_to_nothing_is_the_servers_fault() {
    let mut replay = Replay::new(terms(0), false, None).unwrap();
    assert!(answer(&mut replay, Tag(0), written()).is_err());
    assert!(answer(&mut replay, NOTAG, refusal()).is_err());
}

#[test]
fn what_nobody_can_use_any_more_is_left_out() {
    let mut replay = Replay::new(terms(0), false, None).unwrap();
    let mut open = write("file", "");
    open.mode = wirefs_op::message::put::PutMode::MORE;
    let body = Request::Put(open).encode(NOTAG).to_body();
    replay.handle(Event::Record(Record { number: 1, body })).unwrap();
    assert_eq!((replay.poll(), replay.outcome().dropped), (None, 1));
    let body = remove("gone").encode(NOTAG).to_body();
    replay.handle(Event::Record(Record { number: 2, body })).unwrap();
    assert!(replay.poll().is_some());
}

#[test]
fn so_much_is_under_way_and_no_more() {
    let mut replay = Replay::new(terms(0), false, None).unwrap();
    let mut number = 0;
    while replay.has_room() {
        number += 1;
        replay.handle(Event::Record(record(number, "file"))).unwrap();
    }
    assert_eq!(replay.under_way(), UNDER_WAY_MAX);
    let large = "x".repeat(100_000);
    let mut replay = Replay::new(terms(0), false, None).unwrap();
    while replay.has_room() {
        number += 1;
        let body = Request::Put(write("file", &large)).encode(NOTAG).to_body();
        replay.handle(Event::Record(Record { number, body })).unwrap();
    }
    assert!(replay.under_way() < 100);
}

proptest! {
    #[test]
    fn whatever_numbers_are_left_out_each_change_is_done_once_and_in_order(
        steps in proptest::collection::vec(1..2000_u64, 1..60), seen in 0..60_usize, lag in 1..50_usize,
    ) {
        let numbers: Vec<u64> = steps.iter().scan(0, |sum, step| { *sum += step; Some(*sum) }).collect();
        let known = numbers.get(seen).copied().unwrap_or(0);
        let mut server = Server { seen: known, ..Server::default() };
        let records = numbers.iter().map(|&number| record(number, "file")).collect();
        let (_, outcome) = run(Replay::new(terms(known), known > 0, None).unwrap(), records, &mut server, lag);
        let done: Vec<u64> = server.done.iter().map(|(number, _)| *number).collect();
        let expected: Vec<u64> = numbers.iter().copied().filter(|&number| number >= known).collect();
        prop_assert_eq!(&done, &expected);
        prop_assert_eq!(outcome.sent as usize + outcome.skipped as usize, numbers.len());
    }
}
