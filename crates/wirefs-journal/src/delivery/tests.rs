use super::*;
use crate::outcome::ChangeOutcome;
use bytes::Bytes;
use wirefs_op::message::commit::Rcommit;
use wirefs_op::message::error::Rerror;
use wirefs_op::message::get::{GotMode, Rget};
use wirefs_op::message::put::{Create, PutMode, Rput, Tput};
use wirefs_op::message::target::{NOFD, Target};
use wirefs_op::wire::Data;
use wirefs_op::{Cred, FileId, Kind, Reply, SetStat, Stat, Tag, Timestamp, TreePath};

const BOOT: BootId = BootId(2);
const ROOT: FileId = FileId { fs: 1, ino: 1, generation: 1 };
const MADE: FileId = FileId { fs: 1, ino: 9, generation: 1 };

fn path() -> TreePath {
    TreePath::from_names([&b"new"[..]]).unwrap()
}

fn stat() -> Stat {
    let at = Timestamp { secs: 1, nanos: 0 };
    Stat {
        id: MADE,
        kind: Kind::File,
        version: 1,
        mode: 0o644,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        size: 0,
        blocks: 0,
        blksize: 4096,
        atime: at,
        mtime: at,
        ctime: at,
        without_xattrs: true,
        leased: false,
    }
}

/// The creation of a file.
fn record() -> Record {
    let create = Create { kind: Kind::File, mode: 0o644, rdev: 0, cred: Cred::default() };
    let put = Tput {
        target: Target { path: path(), fd: NOFD, id: Some(ROOT) },
        mode: PutMode::CREATE.and(PutMode::EXCLUSIVE),
        create: Some(create),
        set: SetStat::default(),
        offset: 0,
        data: Data(Bytes::new()),
    };
    Record { number: 1, body: Request::Put(put).encode(NOTAG).to_body() }
}

fn terms(ledger: u64) -> SessionTerms {
    SessionTerms { ledger: Some(ledger), boot: BOOT }
}

/// Answers as a server with or without the file. Returns the kinds of requests, and the results if the delivery ended. Stops before it
/// answers lookup number `lookups_max`.
fn serve(
    delivery: &mut Delivery,
    has: &mut bool,
    lookups_max: u32,
) -> (Vec<&'static str>, Option<DeliveryCounts>) {
    let (mut asked, mut lookups) = (Vec::new(), 0);
    let mut records = VecDeque::from([record()]);
    loop {
        while delivery.wants_record() {
            let event = records.pop_front().map_or(DeliveryInput::End, DeliveryInput::Record);
            delivery.handle(event).unwrap();
        }
        let frame = match delivery.poll() {
            Some(DeliveryOutput::Send(frame)) => frame,
            Some(DeliveryOutput::Findings(_) | DeliveryOutput::Answered(_)) => continue,
            Some(DeliveryOutput::Quarantine(..)) => {
                asked.push("quarantined");
                continue;
            }
            Some(DeliveryOutput::Done(counts)) => return (asked, Some(counts)),
            other => panic!("{other:?} after {asked:?}"),
        };
        let (tag, request) = Request::decode(frame.to_body()).unwrap();
        asked.push(request.name());
        let reply = match request {
            Request::Get(_) if lookups == lookups_max => return (asked, None),
            Request::Get(_) => {
                lookups += 1;
                match *has {
                    true => Reply::Get(Rget {
                        mode: GotMode::NONE,
                        fd: NOFD,
                        stat: Some(stat()),
                        data: Data(Bytes::new()),
                    }),
                    false => Reply::Error(Rerror::from(Errno::NotFound)),
                }
            }
            Request::Put(_) => {
                *has = true;
                let put = Rput { fd: NOFD, count: 0, offset: 0, before: 0, stat: Some(stat()), dir: None };
                Reply::Put(put)
            }
            Request::Commit(_) => Reply::Commit(Rcommit { boot: BOOT }),
            Request::Number(_) => continue,
            other => panic!("{other:?}"),
        };
        let tag: Tag = tag;
        delivery.handle(DeliveryInput::Received(reply.encode(tag).to_body())).unwrap();
    }
}

fn learned() -> Replay {
    let mut replay = Replay::new(ROOT, 3);
    replay.learn(&record(), ChangeOutcome::default()).unwrap();
    replay
}

// S-103
#[test]
fn replay_without_report_continues_over_another_connection() {
    let mut has = false;
    let mut delivery = Delivery::replay_all(learned(), u64::MAX, terms(1), Some(1)).unwrap();
    // After the lookup of the name, the connection breaks at the lookup for the report.
    let (asked, ended) = serve(&mut delivery, &mut has, 1);
    assert_eq!((ended, has), (None, true), "{asked:?}");
    assert!(delivery.take_report().is_none());
    let decided = delivery.suspend().filter(|decided| decided.is_at(BOOT)).expect("a decided replay");
    let mut delivery = Delivery::continue_replay(decided, terms(4)).unwrap();
    let (asked, ended) = serve(&mut delivery, &mut has, 9);
    assert!(ended.is_some() && !asked.contains(&"Tput") && !asked.contains(&"Put"), "{asked:?}");
    let report = delivery.take_report().expect("a report");
    assert_eq!(report.next, 4);
    assert_eq!(report.made.get(&FileId::provisional(1)).map(|stat| stat.id), Some(MADE));
    assert!(matches!(report.fates.get(&1), Some(ChangeFate::Answered(_))));
}

#[test]
fn delivery_that_breaks_before_the_decision_starts_again() {
    let mut has = false;
    let mut delivery = Delivery::replay_all(learned(), u64::MAX, terms(1), Some(1)).unwrap();
    assert_eq!(serve(&mut delivery, &mut has, 0).1, None);
    assert!(delivery.suspend().is_none() && !has);
}

// S-103
#[test]
fn objects_changed_by_others_before_a_second_power_loss_stay() {
    let put = Tput {
        target: Target { path: path(), fd: NOFD, id: Some(MADE) },
        mode: PutMode::DATA,
        create: None,
        set: SetStat::default(),
        offset: 0,
        data: Data(Bytes::from_static(b"data")),
    };
    let record = Record { number: 1, body: Request::Put(put).encode(NOTAG).to_body() };
    let learned_change = || {
        let mut replay = Replay::new(ROOT, 3);
        replay.learn(&record, ChangeOutcome::default()).unwrap();
        replay
    };
    let is_left_alone = |replay: &mut Replay, latest_time: u64| {
        replay.decide(&BTreeMap::new()).unwrap();
        replay.compare(
            &BTreeMap::from([(path(), ObjectStat { id: MADE, changed: 5, modified: 1, size: 0 })]),
            latest_time,
        );
        matches!(replay.step(&record).unwrap(), ReplayStep::Quarantine(_))
    };
    let (mut earlier, mut replay) = (learned_change(), learned_change());
    assert!(is_left_alone(&mut earlier, 4));
    replay.restart_after(&earlier, &BTreeMap::new());
    // The client's own changes may have that time by then.
    assert!(is_left_alone(&mut replay, 6) && !is_left_alone(&mut learned_change(), 6));
}

// S-108
#[test]
fn id_reused_by_a_first_replay_is_no_former_id() {
    let (first, mut second) = (record(), record());
    let (_, Request::Put(put)) = Request::decode(second.body.clone()).unwrap() else { panic!("no creation") };
    let other = TreePath::from_names([&b"other"[..]]).unwrap();
    let target = Target { path: other, ..put.target.clone() };
    second = Record { number: 2, body: Request::Put(Tput { target, ..put }).encode(NOTAG).to_body() };
    let another = FileId { ino: 10, ..MADE };
    let outcome =
        |id: FileId| ChangeOutcome { made: Some(id), is_answered: true, ..ChangeOutcome::default() };
    let learned_change = || {
        let mut replay = Replay::new(ROOT, 4);
        replay.learn(&first, outcome(MADE)).unwrap();
        replay.learn(&second, outcome(another)).unwrap();
        replay.decide(&BTreeMap::new()).unwrap();
        replay
    };
    let (mut earlier, mut replay) = (learned_change(), learned_change());
    let mut sent = earlier.clone();
    for record in [&first, &second] {
        assert!(matches!(sent.step(record).unwrap(), ReplayStep::Send(..)));
    }
    earlier.connection_lost(&sent);
    // The file system gave the second file the former id of the first one, and the client was not notified.
    replay.restart_after(&earlier, &BTreeMap::from([(1, FileId { ino: 11, ..MADE }), (2, MADE)]));
    assert_eq!(replay.former_ids(1), [MADE, FileId::provisional(1)]);
    assert_eq!(replay.former_ids(2), [another, FileId::provisional(2)]);
}

/// Returns the stored findings of a process that ended after `frames_max` frames of changes.
fn stored_findings(frames_max: usize, latest_time: u64) -> Vec<u8> {
    let mut delivery = Delivery::replay_all(learned(), latest_time, terms(1), None).unwrap();
    let (mut stored, mut frames, mut records) = (Vec::new(), 0, VecDeque::from([record()]));
    while frames <= frames_max {
        if delivery.wants_record() {
            delivery.handle(records.pop_front().map_or(DeliveryInput::End, DeliveryInput::Record)).unwrap();
        }
        match delivery.poll() {
            Some(DeliveryOutput::Findings(findings)) => stored = findings.encode(RUN),
            Some(DeliveryOutput::Answered(below)) => stored.extend(Findings::answered(below)),
            Some(DeliveryOutput::Send(frame)) => match Request::decode(frame.to_body()).unwrap() {
                (tag, Request::Get(_)) => {
                    let reply = Reply::Error(Rerror::from(Errno::NotFound));
                    delivery.handle(DeliveryInput::Received(reply.encode(tag).to_body())).unwrap();
                }
                _ => {
                    assert!(!stored.is_empty(), "findings are stored before a change is sent");
                    frames += 1;
                }
            },
            other => panic!("{other:?}"),
        }
    }
    stored
}

const RUN: u64 = 77;

/// Continues the replay in another process, at a server with this ledger.
fn continued(stored: &[u8], ledger: u64) -> Delivery {
    let findings = Findings::decode(stored, RUN).expect("stored findings");
    assert!(findings.is_begun_at(terms(ledger)) && !findings.is_begun_at(terms(1)));
    let mut replay = Replay::new(ROOT, findings.next);
    replay.learn(&record(), ChangeOutcome::default()).unwrap();
    let mut decided = SuspendedReplay::from_findings(&findings, replay).unwrap();
    decided.take(&record(), terms(ledger)).unwrap();
    Delivery::continue_replay(decided, terms(ledger)).unwrap()
}

// S-103
#[test]
fn replay_of_a_dead_process_is_continued() {
    // Before the change was sent, and after the server has applied it.
    for (frames, is_done) in [(0, false), (1, true)] {
        let mut delivery = continued(&stored_findings(frames, 0), if is_done { 4 } else { 3 });
        let mut has = is_done;
        let (asked, ended) = serve(&mut delivery, &mut has, 9);
        assert!(has && !asked.contains(&"quarantined"), "{asked:?}");
        let counts = ended.unwrap();
        // The reply in the ledger says whether the change was rejected.
        assert_eq!((counts.sent, counts.skipped), if is_done { (0, 1) } else { (1, 0) }, "{asked:?}");
    }
}

// S-103
#[test]
fn object_created_since_a_replaying_process_died_stays() {
    let mut delivery = continued(&stored_findings(0, 0), 3);
    let mut has = true;
    let (asked, ended) = serve(&mut delivery, &mut has, 9);
    assert!(ended.is_some() && asked.contains(&"quarantined") && !asked.contains(&"Put"), "{asked:?}");
}

#[test]
fn findings_of_another_kernel_run_are_ignored() {
    assert_eq!(Findings::decode(&stored_findings(1, 0), RUN + 1), None);
}
