use super::*;
use crate::told::Told;
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

/// A file is made.
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

fn terms(ledger: u64) -> Terms {
    Terms { ledger: Some(ledger), boot: BOOT }
}

/// Answers as a server that has the file or not; tells what was asked, and the end if it came to it. It ends before it answers the look
/// with this number.
fn serve(bring: &mut Bring, has: &mut bool, looks_max: u32) -> (Vec<&'static str>, Option<Outcome>) {
    let (mut asked, mut looks) = (Vec::new(), 0);
    let mut records = VecDeque::from([record()]);
    loop {
        while bring.wants_record() {
            let event = records.pop_front().map_or(Event::End, Event::Record);
            bring.handle(event).unwrap();
        }
        let frame = match bring.poll() {
            Some(Act::Send(frame)) => frame,
            Some(Act::Decided(_) | Act::Answered(_)) => continue,
            Some(Act::Keep(..)) => {
                asked.push("kept");
                continue;
            }
            Some(Act::Done(outcome)) => return (asked, Some(outcome)),
            other => panic!("{other:?} after {asked:?}"),
        };
        let (tag, request) = Request::decode(frame.to_body()).unwrap();
        asked.push(request.name());
        let reply = match request {
            Request::Get(_) if looks == looks_max => return (asked, None),
            Request::Get(_) => {
                looks += 1;
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
        bring.handle(Event::Received(reply.encode(tag).to_body())).unwrap();
    }
}

fn learned() -> Redo {
    let mut redo = Redo::new(ROOT, 3);
    redo.learn(&record(), Told::default()).unwrap();
    redo
}

// S-103
#[test]
fn a_connection_that_breaks_when_all_is_done_again_but_not_told_goes_on_over_another() {
    let mut has = false;
    let mut bring = Bring::again(learned(), u64::MAX, terms(1), Some(1)).unwrap();
    // The name is looked at; then what became of it, and that breaks.
    let (asked, ended) = serve(&mut bring, &mut has, 1);
    assert_eq!((ended, has), (None, true), "{asked:?}");
    assert!(bring.take_became().is_none());
    let decided = bring.broken().filter(|decided| decided.is_at(BOOT)).expect("what was decided");
    let mut bring = Bring::go_on(decided, terms(4)).unwrap();
    let (asked, ended) = serve(&mut bring, &mut has, 9);
    assert!(ended.is_some() && !asked.contains(&"Tput") && !asked.contains(&"Put"), "{asked:?}");
    let became = bring.take_became().expect("told at last");
    assert_eq!(became.next, 4);
    assert_eq!(became.made.get(&FileId::provisional(1)).map(|stat| stat.id), Some(MADE));
    assert!(matches!(became.fates.get(&1), Some(Fate::Answered(_))));
}

#[test]
fn what_breaks_before_it_is_decided_begins_anew() {
    let mut has = false;
    let mut bring = Bring::again(learned(), u64::MAX, terms(1), Some(1)).unwrap();
    assert_eq!(serve(&mut bring, &mut has, 0).1, None);
    assert!(bring.broken().is_none() && !has);
}

// S-103
#[test]
fn objects_that_others_changed_before_a_second_power_cut_are_left_alone() {
    let put = Tput {
        target: Target { path: path(), fd: NOFD, id: Some(MADE) },
        mode: PutMode::DATA,
        create: None,
        set: SetStat::default(),
        offset: 0,
        data: Data(Bytes::from_static(b"data")),
    };
    let record = Record { number: 1, body: Request::Put(put).encode(NOTAG).to_body() };
    let learned = || {
        let mut redo = Redo::new(ROOT, 3);
        redo.learn(&record, Told::default()).unwrap();
        redo
    };
    let is_left_alone = |redo: &mut Redo, seen: u64| {
        redo.decide(&BTreeMap::new()).unwrap();
        redo.compare(&BTreeMap::from([(path(), Found { id: MADE, changed: 5 })]), seen);
        matches!(redo.redo(&record).unwrap(), Redone::Aside(_))
    };
    let (mut earlier, mut redo) = (learned(), learned());
    assert!(is_left_alone(&mut earlier, 4));
    redo.begins_anew_after(&earlier, &BTreeMap::new());
    // Own changes may be as late by then.
    assert!(is_left_alone(&mut redo, 6) && !is_left_alone(&mut learned(), 6));
}

// S-108
#[test]
fn what_a_first_redo_made_under_the_id_of_another_lost_file_is_not_known_by_that() {
    let (first, mut second) = (record(), record());
    let (_, Request::Put(put)) = Request::decode(second.body.clone()).unwrap() else { panic!("no creation") };
    let other = TreePath::from_names([&b"other"[..]]).unwrap();
    let target = Target { path: other, ..put.target.clone() };
    second = Record { number: 2, body: Request::Put(Tput { target, ..put }).encode(NOTAG).to_body() };
    let another = FileId { ino: 10, ..MADE };
    let told = |id: FileId| Told { made: Some(id), is_answered: true, ..Told::default() };
    let learned = || {
        let mut redo = Redo::new(ROOT, 4);
        redo.learn(&first, told(MADE)).unwrap();
        redo.learn(&second, told(another)).unwrap();
        redo.decide(&BTreeMap::new()).unwrap();
        redo
    };
    let (mut earlier, mut redo) = (learned(), learned());
    let mut sent = earlier.clone();
    for record in [&first, &second] {
        assert!(matches!(sent.redo(record).unwrap(), Redone::Send(..)));
    }
    earlier.is_broken(&sent);
    // The file system gave the second file the id that the first one had, and the client was not told.
    redo.begins_anew_after(&earlier, &BTreeMap::from([(1, FileId { ino: 11, ..MADE }), (2, MADE)]));
    assert_eq!(redo.known_as(1), [MADE, FileId::provisional(1)]);
    assert_eq!(redo.known_as(2), [another, FileId::provisional(2)]);
}

/// What a process has noted that ended after so many frames of changes. The latest time of change that it had been told is `seen`.
fn ends_in_the_midst(frames_max: usize, seen: u64) -> Vec<u8> {
    let mut bring = Bring::again(learned(), seen, terms(1), None).unwrap();
    let (mut noted, mut frames, mut records) = (Vec::new(), 0, VecDeque::from([record()]));
    while frames <= frames_max {
        if bring.wants_record() {
            bring.handle(records.pop_front().map_or(Event::End, Event::Record)).unwrap();
        }
        match bring.poll() {
            Some(Act::Decided(decision)) => noted = decision.encode(RUN),
            Some(Act::Answered(below)) => noted.extend(Decision::answered(below)),
            Some(Act::Send(frame)) => match Request::decode(frame.to_body()).unwrap() {
                (tag, Request::Get(_)) => {
                    let reply = Reply::Error(Rerror::from(Errno::NotFound));
                    bring.handle(Event::Received(reply.encode(tag).to_body())).unwrap();
                }
                _ => {
                    assert!(!noted.is_empty(), "it is noted before anything is sent");
                    frames += 1;
                }
            },
            other => panic!("{other:?}"),
        }
    }
    noted
}

const RUN: u64 = 77;

/// Another one goes on, at a server whose ledger says this.
fn goes_on(noted: &[u8], ledger: u64) -> Bring {
    let decision = Decision::decode(noted, RUN).expect("what was noted");
    assert!(decision.is_begun_at(terms(ledger)) && !decision.is_begun_at(terms(1)));
    let mut redo = Redo::new(ROOT, decision.next);
    redo.learn(&record(), Told::default()).unwrap();
    let mut decided = Decided::noted(&decision, redo).unwrap();
    decided.take(&record(), terms(ledger)).unwrap();
    Bring::go_on(decided, terms(ledger)).unwrap()
}

// S-103
#[test]
fn what_a_process_was_doing_again_that_died_another_one_goes_on_with() {
    // Before the change was sent, and after the server has done it.
    for (frames, is_done) in [(0, false), (1, true)] {
        let mut bring = goes_on(&ends_in_the_midst(frames, 0), if is_done { 4 } else { 3 });
        let mut has = is_done;
        let (asked, ended) = serve(&mut bring, &mut has, 9);
        assert!(has && !asked.contains(&"kept"), "{asked:?}");
        let outcome = ended.unwrap();
        // Its reply is in the ledger, and says whether it was refused.
        assert_eq!((outcome.sent, outcome.skipped), if is_done { (0, 1) } else { (1, 0) }, "{asked:?}");
    }
}

// S-103
#[test]
fn what_others_have_made_since_a_process_died_that_did_changes_again_is_left_alone() {
    let mut bring = goes_on(&ends_in_the_midst(0, 0), 3);
    let mut has = true;
    let (asked, ended) = serve(&mut bring, &mut has, 9);
    assert!(ended.is_some() && asked.contains(&"kept") && !asked.contains(&"Put"), "{asked:?}");
}

#[test]
fn what_was_noted_by_another_run_of_the_kernel_is_not_gone_on_with() {
    assert_eq!(Decision::decode(&ends_in_the_midst(1, 0), RUN + 1), None);
}
