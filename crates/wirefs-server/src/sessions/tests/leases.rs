//! Leases of several sessions.

mod lifetime;
mod property;

use super::super::ConnectionKey;
use super::world::*;
use crate::blame::{CloseReason, PeerFault};
use crate::limits::BACKLOG_WAITING_BYTES_MAX;
use crate::sessions::{JobTimes, LeaseTerms, ServerInput, ServerOutput, Sessions};
use crate::tree::{ExternalChange, Parked, Touched};
use std::time::Duration;
use wirefs_op::limits::REQUESTS_MAX;
use wirefs_op::message::attach::{Leases, Watch};
use wirefs_op::message::recall::{OWN_CHANGE, RecallItem};
use wirefs_op::message::version::FEATURE_LEASES;
use wirefs_op::{NOTAG, Reply, Request, Tag};

fn whole(ino: u64) -> Vec<RecallItem> {
    vec![RecallItem { id: id(ino), name: None }]
}

/// The same job, handed out again. The tree parked it with the world's next input after it received the job.
fn retried(job: crate::sessions::Job) -> crate::sessions::Job {
    let parked = Some(job.times.received + Duration::from_millis(1));
    crate::sessions::Job { is_retry: true, times: JobTimes { parked, ..job.times }, ..job }
}

/// Sessions 1 and 2 on connections A and B, both with leases.
fn two() -> World {
    let mut world = World::leasing();
    world.join_leasing(A, 1);
    world.join_leasing(B, 2);
    world
}

/// A change by B of an object that A has a lease on. Returns the job and the serial of the recall.
fn parked(world: &mut World, ino: u64) -> (crate::sessions::Job, u64) {
    assert!(world.learn(A, id(ino)));
    let job = world.execute(B, Tag(1), put(0));
    let (outcome, outputs) = world.touch(job.key, &[Touched::object(id(ino))]);
    assert_eq!(outcome, Err(Parked));
    let recalls = recalls(&outputs);
    let [(A, serial, items)] = recalls.as_slice() else { panic!("{outputs:?}") };
    assert_eq!(*items, whole(ino));
    (job, *serial)
}

#[test]
fn leases_are_granted_to_clients_that_ask_for_them() {
    let mut world = World::leasing();
    let (_, leases, _) = world.join_leasing(A, 1);
    assert_eq!(leases, Some(Leases { term_ms: 15_000, kept: false, watch: Watch::Filesystem }));
    assert!(world.is_root_leased);
    world.join(B, 2);
    assert!(world.learn(A, id(7)));
    assert!(!world.learn(B, id(7)), "it did not ask");
}

#[test]
fn server_without_leases_grants_none() {
    let mut world = World::new();
    let (_, leases, _) = world.join_leasing(A, 1);
    assert_eq!((leases, world.is_root_leased), (None, false));
    assert!(!world.learn(A, id(7)));
}

#[test]
fn trecalled_has_no_tag_and_needs_leases() {
    let mut world = World::leasing();
    world.join_leasing(A, 1);
    let outputs = world.receive(A, Tag(3), recalled(1));
    assert_blamed(&outputs, A, PeerFault::StrayTag(Tag(3)));
    world.join(B, 2);
    let outputs = world.receive(B, NOTAG, recalled(1));
    assert_blamed(&outputs, B, PeerFault::NotAgreed("Recalled"));
}

#[test]
fn answers_to_unknown_recalls_are_ignored() {
    let mut world = two();
    for serial in [0, 1, u64::MAX] {
        assert!(world.receive(A, NOTAG, recalled(serial)).is_empty());
    }
}

#[test]
fn notifications_are_accepted_although_all_tags_are_in_use() {
    let mut world = two();
    let (job, serial) = parked(&mut world, 7);
    world.handle(ServerInput::Parked(job.key, job.request.clone()));
    for tag in 0..REQUESTS_MAX {
        world.execute(A, Tag(u16::try_from(tag).unwrap()), stat());
    }
    assert_eq!(executed(&world.receive(A, NOTAG, recalled(serial))), Some(retried(job)));
}

#[test]
fn change_waits_until_the_holder_has_answered() {
    let mut world = two();
    let (job, serial) = parked(&mut world, 7);
    assert!(world.handle(ServerInput::Parked(job.key, job.request.clone())).is_empty());
    assert_eq!(world.sessions.jobs(), 1);
    let again = executed(&world.receive(A, NOTAG, recalled(serial))).unwrap();
    assert_eq!(again, retried(job.clone()), "the same job, from its beginning");
    assert_eq!(world.touch(job.key, &[Touched::object(id(7))]), (Ok(()), vec![]));
    assert!(!world.learn(A, id(7)), "it is being changed");
    world.handle(ServerInput::Finished(job.key));
    assert!(world.learn(A, id(7)));
}

#[test]
fn answer_may_precede_the_return_of_the_job() {
    let mut world = two();
    let (job, serial) = parked(&mut world, 7);
    assert!(executed(&world.receive(A, NOTAG, recalled(serial))).is_none());
    let again = executed(&world.handle(ServerInput::Parked(job.key, job.request.clone())));
    let mut expected = retried(job);
    expected.times.parked = Some(world.now);
    assert_eq!(again, Some(expected));
}

#[test]
fn parked_change_keeps_the_write_slot() {
    let mut world = two();
    let (job, serial) = parked(&mut world, 7);
    world.handle(ServerInput::Parked(job.key, job.request.clone()));
    assert!(world.receive(B, Tag(2), put(1)).is_empty(), "it waits for the one before");
    let read = world.execute(B, Tag(3), stat());
    world.handle(ServerInput::Finished(read.key));
    let again = executed(&world.receive(A, NOTAG, recalled(serial))).unwrap();
    let next = executed(&world.handle(ServerInput::Finished(again.key))).unwrap();
    assert_eq!((again.key, next.tag), (job.key, Tag(2)));
}

#[test]
fn holder_keeps_its_leases_during_its_own_change() {
    let mut world = two();
    assert!(world.learn(A, id(7)));
    let job = world.execute(A, Tag(1), put(0));
    assert_eq!(world.touch(job.key, &[Touched::object(id(7))]), (Ok(()), vec![]));
    assert!(world.grant(job.key, id(7)));
}

#[test]
fn sessions_without_leases_cause_recalls_and_get_none() {
    let mut world = World::leasing();
    world.join_leasing(A, 1);
    world.join(B, 2);
    let (job, serial) = parked(&mut world, 7);
    world.handle(ServerInput::Parked(job.key, job.request.clone()));
    let again = executed(&world.receive(A, NOTAG, recalled(serial))).unwrap();
    world.handle(ServerInput::Finished(again.key));
    world.learn(B, id(8));
    let change = world.execute(A, Tag(1), put(0));
    assert_eq!(world.touch(change.key, &[Touched::object(id(8))]), (Ok(()), vec![]));
}

#[test]
fn changed_names_are_recalled_singly() {
    let mut world = two();
    assert!(world.learn(A, id(3)));
    let job = world.execute(B, Tag(1), put(0));
    let (outcome, outputs) = world.touch(job.key, &[Touched::name(id(3), b"new")]);
    assert_eq!(outcome, Err(Parked));
    let items = vec![RecallItem { id: id(3), name: Some(b"new".to_vec()) }];
    assert!(matches!(recalls(&outputs).as_slice(), [(A, _, sent)] if *sent == items));
}

#[test]
fn names_of_one_directory_are_changed_by_one_job_at_a_time() {
    let mut world = two();
    let first = world.execute(A, Tag(1), put(0));
    let second = world.execute(B, Tag(1), put(1));
    assert_eq!(world.touch(first.key, &[Touched::name(id(3), b"a")]), (Ok(()), vec![]));
    let (outcome, _) = world.touch(second.key, &[Touched::name(id(3), b"b")]);
    assert_eq!(outcome, Err(Parked));
    world.handle(ServerInput::Parked(second.key, second.request.clone()));
    let again = executed(&world.handle(ServerInput::Finished(first.key)));
    assert_eq!(again, Some(retried(second)));
}

#[test]
fn change_that_only_waits_for_the_disk_blocks_no_other() {
    let mut world = two();
    let first = world.execute(B, Tag(1), put(0));
    assert!(world.touch(first.key, &[Touched::name(id(3), b"a")]).0.is_ok());
    world.handle(ServerInput::SlotReleased(first.key));
    let second = world.execute(A, Tag(1), put(1));
    assert_eq!(world.touch(second.key, &[Touched::name(id(3), b"b")]), (Ok(()), vec![]));
    assert!(world.handle(ServerInput::Finished(first.key)).is_empty());
}

#[test]
fn external_changes_are_recalled_without_waiting() {
    let mut world = two();
    assert!(world.learn(A, id(7)) && world.learn(B, id(7)));
    let outside = ExternalChange::Changed { id: id(7), name: None, version: None };
    let sent = recalls(&world.handle(ServerInput::ExternalChange(outside)));
    assert!(
        matches!(sent.as_slice(), [(A, _, one), (B, _, other)] if *one == whole(7) && *other == whole(7))
    );
    assert!(world.learn(A, id(8)));
    let sent = recalls(&world.handle(ServerInput::ExternalChange(ExternalChange::Lost)));
    assert!(matches!(sent.as_slice(), [(A, _, all), ..] if all.is_empty()));
}

#[test]
fn own_changes_are_recognized_by_their_version() {
    let mut world = two();
    assert!(world.learn(A, id(7)));
    let job = world.execute(A, Tag(1), put(0));
    let touched = Touched::object(id(7));
    assert!(world.touch(job.key, std::slice::from_ref(&touched)).0.is_ok());
    world.sessions.changed(world.now, &touched, Some(1), Some(2));
    world.handle(ServerInput::Finished(job.key));
    let report = |version| {
        ServerInput::ExternalChange(ExternalChange::Changed { id: id(7), name: None, version: Some(version) })
    };
    assert!(world.handle(report(2)).is_empty());
    assert_eq!(recalls(&world.handle(report(3))).len(), 1);
}

#[test]
fn report_during_a_change_is_verified_at_its_end() {
    let mut world = World::with(Sessions::leasing(BOOT, LeaseTerms::new(Watch::Directories)));
    world.join_leasing(A, 1);
    assert!(world.learn(A, id(7)));
    let touched = Touched::object(id(7));
    let report = |version| {
        ServerInput::ExternalChange(ExternalChange::Changed { id: id(7), name: None, version: Some(version) })
    };
    for (reported, is_own) in [(2, true), (9, false)] {
        let job = world.execute(A, Tag(1), put(0));
        assert!(world.touch(job.key, std::slice::from_ref(&touched)).0.is_ok());
        assert!(world.handle(report(reported)).is_empty());
        world.sessions.changed(world.now, &touched, Some(1), Some(2));
        let outputs = world.handle(ServerInput::Finished(job.key));
        let looks = outputs.contains(&ServerOutput::Verify { id: id(7), name: None });
        assert_eq!(looks, !is_own, "{outputs:?}");
    }
}

#[test]
fn reads_proceed_while_a_change_waits() {
    let mut world = two();
    let (job, _) = parked(&mut world, 7);
    world.handle(ServerInput::Parked(job.key, job.request));
    assert!(world.learn(A, id(8)));
    assert!(world.learn(B, id(8)));
    assert!(!world.learn(A, id(7)), "a change of it is parked");
}

#[test]
fn close_that_removes_a_name_waits_and_can_be_canceled() {
    let mut world = two();
    assert!(world.learn(A, id(3)));
    let Request::Get(mut get) = stat() else { unreachable!("stat() is a Tget") };
    get.target.fd = wirefs_op::message::target::Fd(5);
    let job = world.execute(B, Tag(1), Request::Get(get));
    assert!(job.may_park);
    assert_eq!(world.touch(job.key, &[Touched::name(id(3), b"n")]).0, Err(Parked));
    world.handle(ServerInput::Parked(job.key, job.request));
    world.handle(ServerInput::Disconnected(B));
    assert_eq!(world.sessions.jobs(), 0);
}

#[test]
fn draining_server_recalls_all_leases() {
    let mut world = two();
    assert!(world.learn(A, id(7)));
    let sent = recalls(&world.handle(ServerInput::Drain));
    let [(A, serial, all), ..] = sent.as_slice() else { panic!("{sent:?}") };
    assert!(all.is_empty() && world.sessions.is_recalling() && world.sessions.has_leases_out());
    for (connection, serial) in [(A, *serial), (B, 1)] {
        assert!(world.receive(connection, NOTAG, recalled(serial)).is_empty());
    }
    assert!(!world.sessions.is_recalling() && !world.sessions.has_leases_out());
}

#[test]
fn draining_server_grants_no_lease_at_attach() {
    let mut world = World::leasing();
    let mut hello = version_body(1, 1 << 20);
    hello.features = FEATURE_LEASES;
    world.receive(A, NOTAG, Request::Version(hello));
    let outputs = world.receive(A, Tag(0), attach(b""));
    let [ServerOutput::Attach { connection, session, .. }] = *outputs.as_slice() else {
        panic!("{outputs:?}")
    };
    world.handle(ServerInput::Drain);
    let mut attached = root();
    attached.root.leased = true;
    let outputs = world.handle(ServerInput::Attached { connection, session, result: Ok(attached) });
    let [ServerOutput::Reply { reply: Reply::Attach(answer), .. }] = outputs.as_slice() else {
        panic!("{outputs:?}")
    };
    assert!(!answer.root.leased && !world.sessions.has_leases_out());
}

#[test]
fn stopping_server_drops_parked_jobs() {
    let mut world = two();
    let (job, _) = parked(&mut world, 7);
    let late = world.execute(A, Tag(2), put(9));
    world.handle(ServerInput::Parked(job.key, job.request));
    let outputs = world.handle(ServerInput::Stop);
    assert_eq!(closed(&outputs, A), Some(CloseReason::Stopping));
    assert_eq!(world.sessions.jobs(), 1, "parked jobs are dropped");
    assert!(world.sessions.has_leases_out());
    let outputs = world.handle(ServerInput::Parked(late.key, late.request));
    assert!(matches!(outputs.as_slice(), [ServerOutput::EndSession(_)]), "{outputs:?}");
    assert_eq!((world.sessions.jobs(), world.sessions.sessions()), (0, 0));
}

#[test]
fn dropped_change_drops_queued_ones_behind_it() {
    for given_back in [true, false] {
        let mut world = two();
        let (job, _) = parked(&mut world, 7);
        if given_back {
            world.handle(ServerInput::Parked(job.key, job.request.clone()));
        }
        assert_eq!(executed(&world.receive(B, Tag(2), put(1))), None, "it waits for the write slot");
        let mut outputs = world.handle(ServerInput::Stop);
        if !given_back {
            outputs.extend(world.handle(ServerInput::Parked(job.key, job.request)));
        }
        assert_eq!(executed(&outputs), None, "the change before it was dropped");
        assert_eq!(world.sessions.jobs(), 0);
    }
}

#[test]
fn backlog_may_be_larger_while_a_change_waits_for_recalls() {
    let mut world = two();
    let (job, serial) = parked(&mut world, 7);
    world.handle(ServerInput::Parked(job.key, job.request));
    let mut sent = 0;
    let mut send = |world: &mut World| {
        sent += 1;
        world.receive(B, Tag(sent + 1), put_bytes(u64::from(sent), 128 * 1024));
        usize::from(sent) * 128 * 1024
    };
    while send(&mut world) < BACKLOG_WAITING_BYTES_MAX - 1024 * 1024 {
        assert!(!world.sessions.is_backlogged(B), "its recall answers would be stuck");
    }
    while !world.sessions.is_backlogged(B) {
        assert!(send(&mut world) < 2 * BACKLOG_WAITING_BYTES_MAX);
    }
    assert!(executed(&world.receive(A, NOTAG, recalled(serial))).is_some());
    assert!(world.sessions.is_backlogged(B), "it waits only for its own job now");
}

#[test]
fn read_from_before_a_change_that_did_not_park_gets_no_lease() {
    let mut world = two();
    assert!(world.learn(A, id(7)));
    let before = world.execute(A, Tag(5), stat());
    let job = world.execute(B, Tag(1), put(0));
    assert_eq!(world.touch(job.key, &[Touched::object(id(7))]).0, Err(Parked));
    world.handle(ServerInput::Finished(job.key));
    assert!(!world.grant(before.key, id(7)));
    world.handle(ServerInput::Finished(before.key));
    assert!(world.learn(A, id(7)));
}

#[test]
fn deferred_touches_count_for_later_sessions() {
    let mut world = World::leasing();
    world.join_leasing(A, 1);
    let job = world.execute(A, Tag(1), put(0));
    let touched = [Touched::name(id(3), b"n"), Touched::object(id(7))];
    assert_eq!(world.touch(job.key, &touched), (Ok(()), vec![]));
    assert!(world.grant(job.key, id(7)), "its own change");
    world.join_leasing(B, 2);
    assert!(!world.learn(B, id(7)) && !world.learn(B, id(3)));
    let other = world.execute(B, Tag(1), put(1));
    assert_eq!(world.touch(other.key, &[Touched::name(id(3), b"m")]).0, Err(Parked));
    world.handle(ServerInput::Parked(other.key, other.request.clone()));
    assert_eq!(executed(&world.handle(ServerInput::Finished(job.key))), Some(retried(other)));
    assert!(world.learn(B, id(7)));
}

#[test]
fn only_session_gets_recalls_of_side_effects() {
    let mut world = World::leasing();
    world.join_leasing(A, 1);
    assert!(world.learn(A, id(7)) && world.learn(A, id(8)));
    let job = world.execute(A, Tag(1), put(0));
    assert_eq!(world.touch(job.key, &[Touched::name(id(3), b"n"), Touched::object(id(8))]), (Ok(()), vec![]));
    let (outcome, outputs) = world.touch(job.key, &[Touched::with_other_names(id(7))]);
    assert_eq!(outcome, Ok(()), "it does not park");
    let is_own_recall = |sent: &[(ConnectionKey, u64, Vec<RecallItem>)]| matches!(sent, [(A, serial, items)] if *items == whole(7) && serial & OWN_CHANGE != 0);
    assert!(is_own_recall(&recalls(&outputs)), "{outputs:?}");
    // All objects that the job touched count for a session that attaches before its end.
    world.join_leasing(B, 2);
    assert!(!world.learn(B, id(8)) && !world.learn(B, id(3)));
    world.handle(ServerInput::Finished(job.key));
    assert!(world.learn(B, id(8)));
}

#[test]
fn absent_holder_gets_missed_recalls_of_the_only_session() {
    let mut world = two();
    assert!(world.learn(A, id(7)));
    world.handle(ServerInput::Disconnected(A));
    world.now = world.now + crate::limits::SESSION_TIMEOUT;
    world.handle(ServerInput::Tick);
    assert_eq!(world.sessions.sessions(), 1);
    let job = world.execute(B, Tag(1), put(0));
    assert_eq!(world.touch(job.key, &[Touched::object(id(7))]), (Ok(()), vec![]), "its leases have expired");
    world.handle(ServerInput::Finished(job.key));
    let (_, leases, outputs) = world.join_leasing(crate::sessions::ConnectionKey(3), 1);
    assert!(leases.unwrap().kept);
    assert!(matches!(recalls(&outputs).as_slice(), [(_, _, items)] if *items == whole(7)));
}
