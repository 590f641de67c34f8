use super::*;
use crate::change::tests::{remove, write};
use proptest::prelude::*;
use wirefs_op::limits::LEDGER_MAX;
use wirefs_op::message::commit::Rcommit;
use wirefs_op::message::error::Rerror;
use wirefs_op::message::put::Rput;
use wirefs_op::message::target::NOFD;

const BOOT: BootId = BootId(3);

/// A server that counts as PROTOCOL.md says, and rejects writes to `no…`.
#[derive(Default)]
struct Server {
    next: Option<u64>,
    acknowledged: u64,
    /// Numbers and paths of applied changes.
    done: Vec<(u64, Vec<u8>)>,
    /// The number above all that it has received.
    seen: u64,
    replies: VecDeque<Bytes>,
    committed: bool,
}

impl Server {
    fn take(&mut self, frame: Frame) {
        let (tag, request) = Request::decode(frame.to_body()).unwrap();
        match request {
            Request::Number(number) => {
                assert!(number.answered <= number.number && number.answered >= self.acknowledged);
                assert!(number.number - number.answered < LEDGER_MAX);
                self.next = Some(number.number);
                self.acknowledged = number.answered;
            }
            Request::Commit(commit) => {
                assert_eq!(commit.scope, CommitScope::Filesystem);
                assert!(self.replies.is_empty(), "a commit before all is answered");
                self.committed = true;
                self.reply(tag, Reply::Commit(Rcommit { boot: BOOT }));
            }
            Request::Put(put) => {
                let number = self.next.expect("a number");
                assert!(number < self.acknowledged + LEDGER_MAX, "too far above the announced number");
                assert_eq!(put.target.fd, NOFD);
                self.next = Some(number + 1);
                let path = put.target.path.as_bytes().to_vec();
                let is_rejected = path.starts_with(b"no");
                if number >= self.seen {
                    self.seen = number + 1;
                    self.done.push((number, path));
                }
                self.reply(tag, if is_rejected { refusal() } else { written() });
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

fn terms(ledger: u64) -> SessionTerms {
    SessionTerms { ledger: Some(ledger), boot: BOOT }
}

/// Delivers all records, with replies `lag` changes late. Returns the rejected changes and the results.
fn run(
    mut pipeline: Pipeline,
    records: Vec<Record>,
    server: &mut Server,
    lag: usize,
) -> (Vec<RejectedChange>, DeliveryCounts) {
    let mut rejected = Vec::new();
    let mut records = records.into_iter().peekable();
    loop {
        while let Some(output) = pipeline.poll() {
            match output {
                PipelineOutput::Send(frame) => server.take(frame),
                PipelineOutput::Rejected(what) => rejected.push(what),
                PipelineOutput::Done(counts) => {
                    assert_eq!(pipeline.in_flight(), 0);
                    return (rejected, counts);
                }
                PipelineOutput::SyncFailed(errno) => panic!("{errno}"),
            }
        }
        let may_lag = pipeline.has_room() && server.replies.len() < lag;
        match (records.peek().is_some(), pipeline.has_room(), may_lag || server.replies.is_empty()) {
            (true, true, true) => pipeline.handle(DeliveryInput::Record(records.next().unwrap())).unwrap(),
            (false, true, _) => pipeline.handle(DeliveryInput::End).unwrap(),
            _ => pipeline
                .handle(DeliveryInput::Received(server.replies.pop_front().expect("a reply")))
                .unwrap(),
        }
    }
}

#[test]
fn changes_the_server_has_are_skipped_and_others_sent_in_order() {
    let mut server = Server { seen: 3, ..Server::default() };
    let records = [1, 2, 3, 4, 9, 10].map(|number| record(number, "file")).to_vec();
    let (rejected, counts) = run(Pipeline::new(terms(3), true, None).unwrap(), records, &mut server, 10);
    let numbers: Vec<u64> = server.done.iter().map(|(number, _)| *number).collect();
    assert_eq!((numbers, rejected.len()), (vec![3, 4, 9, 10], 0));
    assert_eq!(counts, DeliveryCounts { sent: 4, skipped: 2, ..DeliveryCounts::default() });
    assert!(server.committed);
}

#[test]
fn rejected_change_is_reported_and_later_ones_go_on() {
    let mut server = Server::default();
    let records = vec![record(1, "one"), record(2, "no room"), record(3, "three")];
    let (rejected, counts) =
        run(Pipeline::new(terms(0), false, None).unwrap(), records.clone(), &mut server, 10);
    let [RejectedChange { record, errno: Errno::NoSpace, .. }] = &rejected[..] else {
        panic!("{rejected:?}")
    };
    assert_eq!(*record, records[1]);
    assert_eq!((counts.sent, counts.rejected, server.done.len()), (2, 1, 3));
}

#[test]
fn lost_reply_is_fetched_from_the_ledger() {
    // Number 2 was rejected, and its mount is dead.
    let mut server = Server { seen: 4, acknowledged: 2, ..Server::default() };
    let records = vec![record(1, "one"), record(2, "no room"), record(3, "three"), record(4, "four")];
    let pipeline = Pipeline::new(terms(4), true, Some(2)).unwrap();
    let (rejected, counts) = run(pipeline, records, &mut server, 10);
    assert_eq!((rejected.len(), counts.skipped, counts.sent), (1, 2, 1));
    assert_eq!(server.done, [(4, b"four".to_vec())]);
}

#[test]
fn nothing_is_sent_to_a_server_that_forgot_its_ledger() {
    assert_eq!(Pipeline::new(terms(0), true, None).unwrap_err(), Undeliverable::Unknown);
    assert!(Pipeline::new(terms(0), false, None).is_ok());
    let without = SessionTerms { ledger: None, boot: BOOT };
    assert_eq!(Pipeline::new(without, false, None).unwrap_err(), Undeliverable::NoLedger);
}

#[test]
fn journal_without_pending_changes_is_committed() {
    let mut server = Server::default();
    let (_, counts) = run(Pipeline::new(terms(5), true, None).unwrap(), vec![record(4, "x")], &mut server, 1);
    assert_eq!((counts.skipped, server.done.len(), server.committed), (1, 0, true));
}

/// Returns a pipeline that waits for its commit, after one answered change, and the commit's tag.
fn committing() -> Pipeline {
    let mut pipeline = Pipeline::new(terms(0), false, None).unwrap();
    pipeline.handle(DeliveryInput::End).unwrap();
    assert!(matches!(pipeline.poll(), Some(PipelineOutput::Send(_))));
    pipeline
}

fn answer(pipeline: &mut Pipeline, tag: Tag, reply: Reply) -> Result<(), Malformed> {
    pipeline.handle(DeliveryInput::Received(reply.encode(tag).to_body()))
}

#[test]
fn failed_sync_is_reported() {
    let mut pipeline = committing();
    answer(&mut pipeline, COMMIT, Reply::Error(Rerror::from(Errno::Io))).unwrap();
    assert_eq!(pipeline.poll(), Some(PipelineOutput::SyncFailed(Errno::Io)));
}

#[test]
fn commit_of_a_restarted_server_does_not_count() {
    let mut pipeline = committing();
    assert!(answer(&mut pipeline, COMMIT, Reply::Commit(Rcommit { boot: BootId(4) })).is_err());
}

#[test]
fn reply_to_no_request_is_a_fault() {
    let mut pipeline = Pipeline::new(terms(0), false, None).unwrap();
    assert!(answer(&mut pipeline, Tag(0), written()).is_err());
    assert!(answer(&mut pipeline, NOTAG, refusal()).is_err());
}

#[test]
fn useless_changes_are_dropped() {
    let mut pipeline = Pipeline::new(terms(0), false, None).unwrap();
    let mut open = write("file", "");
    open.mode = wirefs_op::message::put::PutMode::MORE;
    let body = Request::Put(open).encode(NOTAG).to_body();
    pipeline.handle(DeliveryInput::Record(Record { number: 1, body })).unwrap();
    assert_eq!((pipeline.poll(), pipeline.counts().dropped), (None, 1));
    let body = remove("gone").encode(NOTAG).to_body();
    pipeline.handle(DeliveryInput::Record(Record { number: 2, body })).unwrap();
    assert!(pipeline.poll().is_some());
}

#[test]
fn changes_in_flight_are_bounded() {
    let mut pipeline = Pipeline::new(terms(0), false, None).unwrap();
    let mut number = 0;
    while pipeline.has_room() {
        number += 1;
        pipeline.handle(DeliveryInput::Record(record(number, "file"))).unwrap();
    }
    assert_eq!(pipeline.in_flight(), IN_FLIGHT_MAX);
    let large = "x".repeat(100_000);
    let mut pipeline = Pipeline::new(terms(0), false, None).unwrap();
    while pipeline.has_room() {
        number += 1;
        let body = Request::Put(write("file", &large)).encode(NOTAG).to_body();
        pipeline.handle(DeliveryInput::Record(Record { number, body })).unwrap();
    }
    assert!(pipeline.in_flight() < 100);
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
        let (_, counts) = run(Pipeline::new(terms(known), known > 0, None).unwrap(), records, &mut server, lag);
        let done: Vec<u64> = server.done.iter().map(|(number, _)| *number).collect();
        let expected: Vec<u64> = numbers.iter().copied().filter(|&number| number >= known).collect();
        prop_assert_eq!(&done, &expected);
        prop_assert_eq!(counts.sent as usize + counts.skipped as usize, numbers.len());
    }
}
