//! Recovery of earlier journals: changes reach the server once and in order, or stay.

use super::*;
use wirefs_journal::entry::{EntryKind, Spot, head};
use wirefs_journal::{DeliveryCounts, Undeliverable};
use wirefs_op::FileId;
use wirefs_op::message::version::BootId;

const THREE: [(u64, &str); 3] = [(1, "one"), (2, "two"), (3, "three")];

/// The result for the only journal.
fn replayed(stage: &Stage) -> ReplayedJournal {
    match stage.recover().pop() {
        Some(JournalRecovery { result: Ok(brought), .. }) => brought,
        other => panic!("{other:?}"),
    }
}

fn recovery_error(stage: &Stage) -> RecoveryError {
    match stage.recover().pop() {
        Some(JournalRecovery { result: Err(stays), .. }) => stays,
        other => panic!("{other:?}"),
    }
}

#[test]
fn journal_is_replayed_in_order_and_removed() {
    let stage = Stage::new();
    stage.left(1, &THREE);
    stage.server.with(|state| state.seen = 2);
    let expected = DeliveryCounts { sent: 2, skipped: 1, ..DeliveryCounts::default() };
    assert_eq!(replayed(&stage).outcome, expected);
    assert_eq!(stage.server.numbers(), [2, 3]);
    assert_eq!(stage.server.with(|state| state.commits), 1);
    assert!(stage.recover().is_empty() && stage.kept().is_empty());
}

// S-87
#[test]
fn recall_of_an_ended_mount_is_acknowledged_at_once() {
    let stage = Stage::new();
    stage.left(1, &THREE);
    stage.server.with(|state| state.recalls = Some(7));
    replayed(&stage);
    assert_eq!(stage.server.with(|state| state.forgotten.clone()), [7]);
}

#[test]
fn broken_connection_is_made_again_and_no_change_is_applied_twice() {
    let stage = Stage::new();
    stage.left(1, &THREE);
    stage.server.with(|state| state.breaks_after = Some(2));
    replayed(&stage);
    assert_eq!(stage.server.numbers(), [1, 2, 3]);
    assert!(pending_journals(&stage.dir.join("journal")).is_empty());
}

#[test]
fn rejected_change_is_quarantined_with_the_reason() {
    let stage = Stage::new();
    stage.left(1, &[(1, "one"), (2, "no room"), (3, "three")]);
    let brought = replayed(&stage);
    assert_eq!((brought.outcome.sent, brought.outcome.rejected, brought.aside), (2, 1, 1));
    assert_eq!(stage.kept(), [QuarantineCount { dir: brought.quarantine.clone(), changes: 1 }]);
    let [change] = &quarantined_changes(&brought.quarantine)[..] else { panic!("one change") };
    assert_eq!((change.number, change.bytes, &change.source[..]), (2, 7, "unix:///here"));
    assert_eq!((&change.what[..], &change.path[..]), ("write 7 bytes at 0", "no room"));
    assert!(change.why.contains("rejected"), "{}", change.why);
    let taken = stage.dir.join("taken");
    assert_eq!(change.take(&taken).unwrap(), 7);
    assert_eq!(std::fs::read(&taken).unwrap(), b"no room");
    assert!(change.take(&taken).is_err(), "what is there is not overwritten");
    change.discard().unwrap();
    assert!(stage.kept().is_empty() && !brought.quarantine.exists());
}

#[test]
fn change_with_a_long_reason_is_listed_and_discarded() {
    let stage = Stage::new();
    stage.left(1, &[(1, "no room")]);
    let brought = replayed(&stage);
    let mut text = std::fs::read(brought.quarantine.join("1.change")).unwrap();
    // Characters of two bytes, so that the cut falls within one.
    for odd in ["", "x"] {
        text.extend_from_slice(format!("{odd}{}", "ä".repeat(64 * 1024)).as_bytes());
        std::fs::write(brought.quarantine.join("1.change"), &text).unwrap();
        assert_eq!(quarantined_changes(&brought.quarantine).len(), 1);
        text.truncate(100);
    }
    // The process that discarded it first was stopped half-way.
    std::fs::remove_file(brought.quarantine.join("1.data")).unwrap();
    quarantined_changes(&brought.quarantine)[0].discard().unwrap();
    assert!(stage.kept().is_empty() && !brought.quarantine.exists());
}

#[test]
fn changes_after_a_damage_are_quarantined_unsent() {
    let stage = Stage::new();
    let dir = stage.left(1, &THREE);
    let path = segment(&dir, 1);
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(3).rposition(|window| window == b"two").unwrap();
    bytes[at] = b'T';
    std::fs::write(&path, bytes).unwrap();
    let brought = replayed(&stage);
    assert_eq!((stage.server.numbers(), brought.aside), (vec![1], 1));
    assert!(brought.damage.is_some());
    assert_eq!(std::fs::read(brought.quarantine.join("3.data")).unwrap(), b"three");
}

#[test]
fn torn_end_is_cut() {
    let stage = Stage::new();
    let dir = stage.left(1, &THREE);
    let path = segment(&dir, 1);
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(5).rposition(|window| window == b"three").unwrap();
    bytes.truncate(at + 2);
    std::fs::write(&path, bytes).unwrap();
    let brought = replayed(&stage);
    assert_eq!((stage.server.numbers(), brought.aside, brought.damage), (vec![1, 2], 0, None));
}

/// A segment with these changes from another boot of the local machine, and the offset of each.
fn of_another_run(header: &Header, changes: &[(u64, Frame)]) -> (Vec<u8>, Vec<usize>) {
    let mut segment = Header { run: header.run ^ 1, ..header.clone() }.encode();
    let (_, _, salt) = Header::decode(&segment).unwrap();
    let mut starts = Vec::new();
    for (number, frame) in changes {
        starts.push(segment.len());
        let (body, offset) = (frame.to_body(), segment.len() as u64);
        segment.extend_from_slice(&head(EntryKind::Change, *number, &[&body], Spot { salt, offset }));
        segment.extend_from_slice(&body);
    }
    (segment, starts)
}

// S-12
#[test]
fn hole_in_unsynced_data_after_a_power_loss_is_the_end_and_no_damage() {
    let stage = Stage::new();
    let dir = stage.left(1, &[(1, "one")]);
    let header = pending::SurveyedJournal::own(&dir).unwrap().header().unwrap().clone();
    let large = |number: u64| (number, write_bytes("large", Bytes::from(vec![b'x'; 4096])));
    let (mut bytes, starts) = of_another_run(&header, &[large(1), large(2), large(3), large(4)]);
    bytes[starts[2] + 1000..starts[2] + 3000].fill(0);
    std::fs::write(segment(&dir, 1), bytes).unwrap();
    let brought = replayed(&stage);
    assert_eq!((stage.server.numbers(), brought.aside, brought.damage), (vec![1, 2], 0, None));
    assert!(stage.kept().is_empty());
}

#[test]
fn nothing_is_sent_to_a_server_that_lost_its_ledger() {
    let stage = Stage::new();
    let journal = stage.begin(1);
    for (number, name) in THREE {
        assert!(journal.record(number, write_to(name)));
    }
    assert!(journal.write(|| 2));
    drop(journal);
    let brought = replayed(&stage);
    assert_eq!((brought.unfit, brought.aside), (Some(Undeliverable::Unknown), 3));
    assert_eq!(stage.server.numbers(), [0_u64; 0]);
    assert_eq!(stage.kept().iter().map(|kept| kept.changes).sum::<u64>(), 3);
    assert!(pending_journals(&stage.dir.join("journal")).is_empty());
}

/// A server whose machine rebooted after it answered the first of three changes of an exclusive mount.
fn started_again() -> Stage {
    let stage = Stage::new();
    let journal = stage.begin(1);
    assert!(journal.note(Note::Alone(Some(1))));
    for (number, name) in THREE {
        assert!(journal.record(number, write_to(name)));
    }
    assert!(journal.write(|| 2));
    stage.server.with(|state| state.boot = BootId(2));
    stage
}

#[test]
fn changes_lost_by_a_reboot_are_resent_under_new_numbers() {
    // Before the session was resumed, and after it was resumed without a change.
    for seen in [0, 1] {
        let stage = started_again();
        stage.server.with(|state| state.seen = seen);
        assert_eq!(replayed(&stage).outcome, DeliveryCounts { sent: 3, ..DeliveryCounts::default() });
        assert_eq!(stage.server.numbers(), [5, 6, 7], "not those of the journal, nor the one behind them");
    }
}

/// A replay that ended after the first change.
fn ended_in_the_midst() -> Stage {
    let stage = started_again();
    stage.server.with(|state| (state.breaks_after, state.dials_left) = (Some(1), Some(1)));
    assert!(matches!(recovery_error(&stage), RecoveryError::Connect(_)));
    assert_eq!(stage.server.numbers(), [5]);
    stage.server.with(|state| state.dials_left = None);
    stage
}

#[test]
fn next_process_continues_a_partial_replay() {
    let stage = ended_in_the_midst();
    let brought = replayed(&stage);
    assert_eq!((brought.unfit, brought.aside), (None, 0));
    assert_eq!(brought.outcome, DeliveryCounts { sent: 2, skipped: 1, ..DeliveryCounts::default() });
    assert_eq!(stage.server.numbers(), [5, 6, 7], "nothing twice");
    assert!(pending_journals(&stage.dir.join("journal")).is_empty());
}

#[test]
fn partial_replay_without_findings_does_not_count_as_done() {
    let stage = ended_in_the_midst();
    findings_file::forget(&stage.only_journal());
    let brought = replayed(&stage);
    assert_eq!((brought.unfit, brought.aside), (Some(Undeliverable::Unknown), 3));
    assert_eq!(stage.server.numbers(), [5], "nothing twice");
}

#[test]
fn session_without_delivery_releases_its_leases() {
    // The server has lost its ledger; and its machine rebooted after changes by others.
    for boot in [1, 2] {
        let stage = Stage::new();
        let journal = stage.begin(1);
        assert!(journal.record(1, write_to("one")) && journal.record(2, write_to("two")));
        assert!(journal.write(|| 2));
        drop(journal);
        stage.server.with(|state| state.boot = BootId(boot));
        assert!(replayed(&stage).unfit.is_some());
        stage.server.wait_for(|state| state.ends == 1);
    }
}

#[test]
fn replay_continues_after_a_broken_connection() {
    let stage = started_again();
    stage.server.with(|state| state.breaks_after = Some(1));
    assert_eq!(replayed(&stage).outcome.sent, 2);
    assert_eq!(stage.server.numbers(), [5, 6, 7]);
}

#[test]
fn journal_stays_for_a_server_that_cannot_take_it_now() {
    let stage = Stage::new();
    let dir = stage.left(1, &THREE);
    stage.server.with(|state| state.root = FileId { fs: 0, ino: 99, generation: 1 });
    assert!(matches!(recovery_error(&stage), RecoveryError::OtherTree));
    stage.server.with(|state| (state.root.ino, state.read_only) = (2, true));
    assert!(matches!(recovery_error(&stage), RecoveryError::ReadOnly));
    stage.server.with(|state| (state.read_only, state.counts) = (false, false));
    assert!(matches!(recovery_error(&stage), RecoveryError::Unfit(Undeliverable::NoLedger)));
    assert!(dir.exists());
    stage.server.with(|state| state.counts = true);
    replayed(&stage);
    assert_eq!(stage.server.numbers(), [1, 2, 3]);
}

#[test]
fn journal_of_another_version_is_left_unchanged() {
    let stage = Stage::new();
    let dir = stage.left(1, &THREE);
    let path = segment(&dir, 1);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[16] = 77;
    std::fs::write(&path, &bytes).unwrap();
    let RecoveryError::Unreadable(why) = recovery_error(&stage) else { panic!("it cannot be read") };
    assert!(why.contains("version 77"), "{why}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    assert_eq!(stage.server.numbers(), [0_u64; 0]);
}

#[test]
fn mount_replays_journals_before_it_opens_its_session() {
    let stage = Stage::new();
    stage.left(1, &THREE);
    let connected = crate::connect(stage.plan()).unwrap();
    assert_eq!(stage.server.numbers(), [1, 2, 3]);
    let [JournalRecovery { result: Ok(_), .. }] = connected.recovered() else { panic!("it was brought") };
    // One to find the server, used up by the journal; one for the mount; one to write the journal of this test.
    assert_eq!(stage.server.with(|state| state.dials), 3);
}
