//! Writing of journals, and failures of it.

use super::*;
use crate::engine::Engine;
use wirefs_client::call::{Call, ROOT};
use wirefs_fuse::ReaderRole;
use wirefs_journal::DiskJob;
use wirefs_journal::limits::BACKLOG_SEGMENTS_MAX;
use wirefs_op::Timestamp;
use wirefs_op::message::version::BootId;

/// The changes and bytes of a journal of an earlier mount.
fn left(stage: &Stage) -> (u64, u64) {
    match &pending_journals(&stage.dir.join("journal"))[..] {
        [PendingJournal { state: PendingJournalState::Pending { changes, bytes, .. }, .. }] => {
            (*changes, *bytes)
        }
        other => panic!("{other:?}"),
    }
}

// S-103
#[test]
fn changes_after_a_reboot_are_for_the_new_boot() {
    let stage = Stage::new();
    let journal = stage.begin(1);
    assert!(journal.record(1, write_to("one")) && journal.write(|| 0));
    let dir = journal.place().unwrap().1;
    assert!(journal.turn(BootId(9)) && journal.forget(2));
    assert!(journal.record(2, write_to("two")) && journal.write(|| 0));
    drop(journal);
    let left = pending::SurveyedJournal::own(&dir).unwrap();
    assert_eq!(left.header().unwrap().boot, BootId(9));
    assert_eq!((left.survey.needed_from(0).0, left.survey.durable), (1, 2));
}

#[test]
fn written_changes_survive_the_process_and_coalesced_ones_do_not() {
    let stage = Stage::new();
    let journal = stage.begin(1);
    assert!(journal.record(1, write_to("one")) && journal.record(2, write_to("two")));
    assert!(journal.write(|| 0));
    assert!(journal.record(3, write_to("three")));
    drop(journal);
    assert_eq!(left(&stage).0, 2);
}

#[test]
fn two_processes_never_use_one_journal() {
    let stage = Stage::new();
    let journal = stage.begin(1);
    assert!(journal.record(1, write_to("one")) && journal.write(|| 0));
    let [PendingJournal { state: PendingJournalState::InUse, .. }] =
        &pending_journals(&stage.dir.join("journal"))[..]
    else {
        panic!("it is in use")
    };
    assert!(stage.recover().is_empty());
    assert_eq!(stage.server.numbers(), [0_u64; 0]);
    let plan = stage.plan();
    let carrier = plan.dial.dial().unwrap();
    let session = SessionId([1; 16]);
    let attached = crate::handshake::shake_hands(carrier, session, &plan).unwrap();
    assert!(Journal::begin(&stage.journal_plan(), session, &attached, |_| {}).is_none());
}

#[test]
fn changes_on_the_servers_disk_are_removed_with_their_segments() {
    let stage = Stage::new();
    let journal = stage.begin(1);
    let data = Bytes::from(vec![7; 128 * 1024]);
    let last = 140;
    for number in 1..=last {
        assert!(journal.record(number, write_bytes("large", data.clone())));
    }
    assert!(journal.write(|| 0));
    let dir = stage.only_journal();
    assert!(segment(&dir, 1).exists() && segment(&dir, 2).exists());
    assert!(journal.forget(100) && segment(&dir, 1).exists());
    assert!(journal.forget(last - 2));
    journal.group.tidy();
    assert!(!segment(&dir, 1).exists() && segment(&dir, 2).exists());
    let status = journal.status(last - 1);
    assert_eq!((status.figures.records, status.figures.unanswered_records), (3, 2));
    assert!(!journal.is_done_below(last) && journal.is_done_below(last + 1));
    drop(journal);
    assert_eq!(left(&stage).0, 3);
}

// S-103
#[test]
fn notes_of_a_removed_segment_are_repeated() {
    let stage = Stage::new();
    let journal = stage.begin(1);
    assert!(journal.note(Note::Alone(Some(1))) && journal.note(Note::Seen(Timestamp { secs: 5, nanos: 0 })));
    let data = Bytes::from(vec![7; 128 * 1024]);
    for number in 1..=140 {
        assert!(journal.record(number, write_bytes("large", data.clone())));
    }
    assert!(journal.write(|| 140) && journal.forget(138));
    journal.group.tidy();
    let dir = stage.only_journal();
    assert!(!segment(&dir, 1).exists() && segment(&dir, 2).exists());
    drop(journal);
    let left = pending::SurveyedJournal::open(&dir, |_| {}).unwrap().expect("nobody uses it");
    assert!(left.survey.is_exclusive());
    assert_eq!((left.survey.answered, left.survey.latest_time), (140, 5_000_000_000));
}

#[test]
fn unneeded_journal_is_removed_with_its_mount() {
    let stage = Stage::new();
    let journal = stage.begin(1);
    assert!(journal.record(1, write_to("one")) && journal.write(|| 0) && journal.forget(2));
    journal.end(false);
    assert!(pending_journals(&stage.dir.join("journal")).is_empty());
    assert!(!stage.dir.join("journal").read_dir().unwrap().any(|entry| entry.is_ok()));
}

#[test]
fn needed_journal_stays_after_its_mount() {
    let stage = Stage::new();
    let journal = stage.begin(1);
    assert!(journal.record(1, write_to("one")) && journal.write(|| 0));
    journal.end(true);
    assert_eq!(left(&stage).0, 1);
}

#[test]
fn full_disk_is_reported_once_and_earlier_changes_are_kept() {
    let stage = Stage::new();
    let journal = stage.begin(1);
    assert!(journal.record(1, write_to("one")) && journal.write(|| 0));
    let dir = stage.only_journal();
    // The next segment cannot be created.
    std::fs::create_dir(segment(&dir, 2)).unwrap();
    let data = Bytes::from(vec![7; 128 * 1024]);
    let failed = (2..200).find(|number| !journal.record(*number, write_bytes("large", data.clone())));
    let failed = failed.expect("a full segment");
    assert!(journal.status(0).failed.is_some());
    assert!(journal.record(failed + 1, write_to("later")) && journal.write(|| 0), "it was told");
    assert!(!journal.sync_to(journal.written()), "nobody may rely on it");
    drop(journal);
    std::fs::remove_dir(segment(&dir, 2)).unwrap();
    assert_eq!(left(&stage).0, failed - 1);
}

// S-96
#[test]
fn failure_of_the_disk_is_reported_before_the_next_write() {
    let stage = Stage::new();
    let journal = stage.begin(1);
    let data = Bytes::from(vec![7; 128 * 1024]);
    for number in 1..=140 {
        assert!(journal.record(number, write_bytes("large", data.clone())));
    }
    assert!(journal.write(|| 140));
    let dir = stage.only_journal();
    // It cannot be removed.
    std::fs::remove_file(segment(&dir, 1)).unwrap();
    std::fs::create_dir(segment(&dir, 1)).unwrap();
    assert!(journal.forget(138));
    journal.group.tidy();
    assert!(journal.status(0).failed.is_some() && !journal.is_whole() && !journal.is_full());
    assert!(!journal.record(141, write_to("later")) || !journal.write(|| 0), "whoever writes is told");
}

#[test]
fn only_changes_wait_for_a_slow_disk_without_the_core_lock() {
    let stage = Stage::new();
    let mut journal = stage.begin(1);
    let disk = group::tests::ScriptedDisk::default();
    disk.hold(true);
    journal.group = GroupThread::start(disk.clone()).unwrap();
    for number in 1..=BACKLOG_SEGMENTS_MAX as u64 + 2 {
        journal.group.opened(number, &group::tests::segment(number)).unwrap();
    }
    let plan = stage.plan();
    let carrier = plan.dial.dial().unwrap();
    let session = SessionId([2; 16]);
    let attached = crate::handshake::shake_hands(carrier, session, &plan).unwrap();
    let engine = Arc::new(Engine::new(&plan, session, &attached, None, Some(journal)));
    let keeps_pace = |engine: &Engine, call| engine.keep_pace(&ReaderRole::elsewhere(), &call);
    keeps_pace(&engine, Call::Getattr { node: ROOT, handle: None });
    let (done, came) = std::sync::mpsc::channel();
    let (for_thread, its_disk) = (Arc::clone(&engine), disk.clone());
    std::thread::spawn(move || {
        keeps_pace(&for_thread, Call::Unlink { parent: ROOT, name: b"name" });
        done.send(its_disk.has_done(&DiskJob::SyncSegment(2)))
    });
    assert!(engine.status(&stage.dir).journal.unwrap().failed.is_none());
    disk.hold(false);
    assert_eq!(came.recv_timeout(std::time::Duration::from_secs(60)), Ok(true));
}

#[test]
fn acknowledged_replies_are_noted_first() {
    let stage = Stage::new();
    let journal = stage.begin(1);
    for number in 1..=9 {
        assert!(journal.record(number, write_to("file")));
    }
    let told = Request::Number(Tnumber { number: 9, answered: 6 }).encode(NOTAG);
    assert!(journal.before(&told));
    drop(journal);
    // The replies to numbers 6 to 8 were not received, and are requested.
    stage.server.with(|state| state.seen = 9);
    let [JournalRecovery { result: Ok(brought), .. }] = &stage.recover()[..] else {
        panic!("it was brought")
    };
    assert_eq!((brought.outcome.skipped, brought.outcome.sent), (8, 1));
    assert_eq!(stage.server.numbers(), [9]);
}

// S-92
#[test]
fn discarded_rejected_change_does_not_fail_the_journal() {
    let stage = Stage::new();
    let journal = stage.begin(1);
    let drop_all = || {
        let kept = quarantined_changes(&stage.dir.join("quarantine"));
        assert_eq!(kept.len(), 1);
        kept[0].discard().unwrap();
        assert!(!stage.dir.join("quarantine").read_dir().is_ok_and(|mut dir| dir.next().is_some()));
    };
    for number in 1..=2 {
        assert!(journal.record(number, write_to("file")) && journal.write(|| 0));
    }
    assert!(journal.refuse(1, &write_to("file"), Some(Errno::NoSpace)));
    drop_all();
    assert!(journal.forget(2));
    assert_eq!(journal.late.next().and_then(|work| work.forget), Some(2));
    assert!(journal.sync_quarantine_and_forget(2));
    assert!(journal.refuse(2, &write_to("file"), Some(Errno::NoSpace)));
    drop_all();
    assert_eq!(journal.status(3).failed, None);
    assert_eq!(journal.status(3).figures.records, 1);
    journal.end(false);
    assert!(pending_journals(&stage.dir.join("journal")).is_empty());
}

// S-92
#[test]
fn rejected_change_is_removed_after_its_sync_and_no_call_waits() {
    let stage = Stage::new();
    let journal = stage.begin(1);
    let changes = 100;
    for number in 1..=changes {
        assert!(journal.record(number, write_to("file")) && journal.write(|| 0));
        assert!(journal.refuse(number, &write_to("file"), Some(Errno::NoSpace)));
    }
    let records = || journal.status(changes + 1).figures.records;
    assert!(journal.forget(50) && journal.forget(60));
    assert_eq!(records(), changes, "whoever says so does not wait for the disk");
    // A change during the sync does not count as synced.
    let unsynced = journal.refused().take_unsynced();
    assert!(journal.forget(61) && records() == changes);
    journal.refused().synced(unsynced, false);
    assert_eq!(journal.late.next().and_then(|work| work.forget), Some(61));
    assert!(journal.sync_quarantine_and_forget(61));
    assert_eq!(records(), changes - 60);
    assert!(journal.forget(71), "the disk has all of it");
    assert_eq!(records(), changes - 70);
    assert_eq!(stage.kept().iter().map(|kept| kept.changes).sum::<u64>(), changes);
}
