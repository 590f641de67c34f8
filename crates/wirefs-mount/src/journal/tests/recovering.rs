//! What an earlier mount left comes to the server, once and in order, or stays.

use super::*;
use wirefs_journal::entry::{EntryKind, Spot, head};
use wirefs_journal::{DeliveryCounts, Undeliverable};
use wirefs_op::FileId;
use wirefs_op::message::version::BootId;

const THREE: [(u64, &str); 3] = [(1, "one"), (2, "two"), (3, "three")];

/// What became of the only journal.
fn brought(stage: &Stage) -> Brought {
    match stage.recover().pop() {
        Some(Recovered { result: Ok(brought), .. }) => brought,
        other => panic!("{other:?}"),
    }
}

fn stays(stage: &Stage) -> Stays {
    match stage.recover().pop() {
        Some(Recovered { result: Err(stays), .. }) => stays,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_was_left_comes_to_the_server_in_order_and_the_journal_goes() {
    let stage = Stage::new();
    stage.left(1, &THREE);
    stage.server.with(|state| state.seen = 2);
    let expected = DeliveryCounts { sent: 2, skipped: 1, ..DeliveryCounts::default() };
    assert_eq!(brought(&stage).outcome, expected);
    assert_eq!(stage.server.numbers(), [2, 3]);
    assert_eq!(stage.server.with(|state| state.commits), 1);
    assert!(stage.recover().is_empty() && stage.kept().is_empty());
}

// S-87
#[test]
fn what_the_server_recalls_from_a_dead_mount_is_forgotten_at_once() {
    let stage = Stage::new();
    stage.left(1, &THREE);
    stage.server.with(|state| state.recalls = Some(7));
    brought(&stage);
    assert_eq!(stage.server.with(|state| state.forgotten.clone()), [7]);
}

#[test]
fn a_connection_that_breaks_is_made_again_and_nothing_is_done_twice() {
    let stage = Stage::new();
    stage.left(1, &THREE);
    stage.server.with(|state| state.breaks_after = Some(2));
    brought(&stage);
    assert_eq!(stage.server.numbers(), [1, 2, 3]);
    assert!(left_journals(&stage.dir.join("journal")).is_empty());
}

#[test]
fn what_the_server_refuses_is_kept_with_the_reason() {
    let stage = Stage::new();
    stage.left(1, &[(1, "one"), (2, "no room"), (3, "three")]);
    let brought = brought(&stage);
    assert_eq!((brought.outcome.sent, brought.outcome.rejected, brought.aside), (2, 1, 1));
    assert_eq!(stage.kept(), [Kept { dir: brought.quarantine.clone(), changes: 1 }]);
    let [change] = &kept_changes(&brought.quarantine)[..] else { panic!("one change") };
    assert_eq!((change.number, change.bytes, &change.source[..]), (2, 7, "unix:///here"));
    assert_eq!((&change.what[..], &change.path[..]), ("write 7 bytes at 0", "no room"));
    assert!(change.why.contains("refused"), "{}", change.why);
    let taken = stage.dir.join("taken");
    assert_eq!(change.take(&taken).unwrap(), 7);
    assert_eq!(std::fs::read(&taken).unwrap(), b"no room");
    assert!(change.take(&taken).is_err(), "what is there is not overwritten");
    change.discard().unwrap();
    assert!(stage.kept().is_empty() && !brought.quarantine.exists());
}

#[test]
fn what_was_refused_with_a_long_reason_is_shown_and_dropped() {
    let stage = Stage::new();
    stage.left(1, &[(1, "no room")]);
    let brought = brought(&stage);
    let mut text = std::fs::read(brought.quarantine.join("1.change")).unwrap();
    // Letters of two bytes, whichever way the end falls.
    for odd in ["", "x"] {
        text.extend_from_slice(format!("{odd}{}", "ä".repeat(64 * 1024)).as_bytes());
        std::fs::write(brought.quarantine.join("1.change"), &text).unwrap();
        assert_eq!(kept_changes(&brought.quarantine).len(), 1);
        text.truncate(100);
    }
    // Whoever dropped it first was stopped half-way.
    std::fs::remove_file(brought.quarantine.join("1.data")).unwrap();
    kept_changes(&brought.quarantine)[0].discard().unwrap();
    assert!(stage.kept().is_empty() && !brought.quarantine.exists());
}

#[test]
fn what_stands_behind_a_damaged_place_is_kept_and_not_sent() {
    let stage = Stage::new();
    let dir = stage.left(1, &THREE);
    let path = segment(&dir, 1);
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(3).rposition(|window| window == b"two").unwrap();
    bytes[at] = b'T';
    std::fs::write(&path, bytes).unwrap();
    let brought = brought(&stage);
    assert_eq!((stage.server.numbers(), brought.aside), (vec![1], 1));
    assert!(brought.damage.is_some());
    assert_eq!(std::fs::read(brought.quarantine.join("3.data")).unwrap(), b"three");
}

#[test]
fn a_torn_end_is_cut() {
    let stage = Stage::new();
    let dir = stage.left(1, &THREE);
    let path = segment(&dir, 1);
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(5).rposition(|window| window == b"three").unwrap();
    bytes.truncate(at + 2);
    std::fs::write(&path, bytes).unwrap();
    let brought = brought(&stage);
    assert_eq!((stage.server.numbers(), brought.aside, brought.damage), (vec![1, 2], 0, None));
}

/// The bytes of a segment with these changes, which another run of the kernel wrote, and where each of them begins.
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
fn a_hole_in_what_was_not_synced_when_power_was_lost_is_the_end_and_no_damage() {
    let stage = Stage::new();
    let dir = stage.left(1, &[(1, "one")]);
    let header = left::Left::own(&dir).unwrap().header().unwrap().clone();
    let large = |number: u64| (number, write_bytes("large", Bytes::from(vec![b'x'; 4096])));
    let (mut bytes, starts) = of_another_run(&header, &[large(1), large(2), large(3), large(4)]);
    bytes[starts[2] + 1000..starts[2] + 3000].fill(0);
    std::fs::write(segment(&dir, 1), bytes).unwrap();
    let brought = brought(&stage);
    assert_eq!((stage.server.numbers(), brought.aside, brought.damage), (vec![1, 2], 0, None));
    assert!(stage.kept().is_empty());
}

#[test]
fn nothing_is_sent_to_a_server_that_forgot_what_it_did() {
    let stage = Stage::new();
    let journal = stage.begin(1);
    for (number, name) in THREE {
        assert!(journal.record(number, write_to(name)));
    }
    assert!(journal.write(|| 2));
    drop(journal);
    let brought = brought(&stage);
    assert_eq!((brought.unfit, brought.aside), (Some(Undeliverable::Unknown), 3));
    assert_eq!(stage.server.numbers(), [0_u64; 0]);
    assert_eq!(stage.kept().iter().map(|kept| kept.changes).sum::<u64>(), 3);
    assert!(left_journals(&stage.dir.join("journal")).is_empty());
}

/// The server's machine was started again, after it had answered the first of three changes of a mount that was alone.
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
fn what_a_servers_machine_lost_is_sent_again_under_numbers_of_its_own() {
    // Before anybody took up the session, and where somebody did and only looked.
    for seen in [0, 1] {
        let stage = started_again();
        stage.server.with(|state| state.seen = seen);
        assert_eq!(brought(&stage).outcome, DeliveryCounts { sent: 3, ..DeliveryCounts::default() });
        assert_eq!(stage.server.numbers(), [5, 6, 7], "not those of the journal, nor the one behind them");
    }
}

/// Who sent it again ended after the first change.
fn ended_in_the_midst() -> Stage {
    let stage = started_again();
    stage.server.with(|state| (state.breaks_after, state.dials_left) = (Some(1), Some(1)));
    assert!(matches!(stays(&stage), Stays::Connect(_)));
    assert_eq!(stage.server.numbers(), [5]);
    stage.server.with(|state| state.dials_left = None);
    stage
}

#[test]
fn what_was_sent_again_in_part_the_next_one_goes_on_with() {
    let stage = ended_in_the_midst();
    let brought = brought(&stage);
    assert_eq!((brought.unfit, brought.aside), (None, 0));
    assert_eq!(brought.outcome, DeliveryCounts { sent: 2, skipped: 1, ..DeliveryCounts::default() });
    assert_eq!(stage.server.numbers(), [5, 6, 7], "nothing twice");
    assert!(left_journals(&stage.dir.join("journal")).is_empty());
}

#[test]
fn what_was_sent_again_in_part_is_not_taken_for_done_where_it_is_not_noted() {
    let stage = ended_in_the_midst();
    decided::forget(&stage.only_journal());
    let brought = brought(&stage);
    assert_eq!((brought.unfit, brought.aside), (Some(Undeliverable::Unknown), 3));
    assert_eq!(stage.server.numbers(), [5], "nothing twice");
}

#[test]
fn a_session_of_which_nothing_is_sent_gives_back_what_it_was_promised() {
    // The server no longer knows what it did; and it was started again, where others had come between.
    for boot in [1, 2] {
        let stage = Stage::new();
        let journal = stage.begin(1);
        assert!(journal.record(1, write_to("one")) && journal.record(2, write_to("two")));
        assert!(journal.write(|| 2));
        drop(journal);
        stage.server.with(|state| state.boot = BootId(boot));
        assert!(brought(&stage).unfit.is_some());
        stage.server.wait_for(|state| state.ends == 1);
    }
}

#[test]
fn a_break_while_it_is_sent_again_is_gone_on_with() {
    let stage = started_again();
    stage.server.with(|state| state.breaks_after = Some(1));
    assert_eq!(brought(&stage).outcome.sent, 2);
    assert_eq!(stage.server.numbers(), [5, 6, 7]);
}

#[test]
fn a_server_that_cannot_take_it_now_finds_it_later() {
    let stage = Stage::new();
    let dir = stage.left(1, &THREE);
    stage.server.with(|state| state.root = FileId { fs: 0, ino: 99, generation: 1 });
    assert!(matches!(stays(&stage), Stays::OtherTree));
    stage.server.with(|state| (state.root.ino, state.read_only) = (2, true));
    assert!(matches!(stays(&stage), Stays::ReadOnly));
    stage.server.with(|state| (state.read_only, state.counts) = (false, false));
    assert!(matches!(stays(&stage), Stays::Unfit(Undeliverable::NoLedger)));
    assert!(dir.exists());
    stage.server.with(|state| state.counts = true);
    brought(&stage);
    assert_eq!(stage.server.numbers(), [1, 2, 3]);
}

#[test]
fn a_journal_of_another_version_is_left_as_it_is() {
    let stage = Stage::new();
    let dir = stage.left(1, &THREE);
    let path = segment(&dir, 1);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[16] = 77;
    std::fs::write(&path, &bytes).unwrap();
    let Stays::Unreadable(why) = stays(&stage) else { panic!("it cannot be read") };
    assert!(why.contains("version 77"), "{why}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    assert_eq!(stage.server.numbers(), [0_u64; 0]);
}

#[test]
fn a_mount_brings_what_was_left_before_it_opens_its_own_session() {
    let stage = Stage::new();
    stage.left(1, &THREE);
    let connected = crate::connect(stage.plan()).unwrap();
    assert_eq!(stage.server.numbers(), [1, 2, 3]);
    let [Recovered { result: Ok(_), .. }] = connected.recovered() else { panic!("it was brought") };
    // One to find the server, which did for the journal; one for the mount; one to write the journal of this test.
    assert_eq!(stage.server.with(|state| state.dials), 3);
}
