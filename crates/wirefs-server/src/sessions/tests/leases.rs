//! Leases of several sessions: who is told, who waits, who is heard.

mod lives;
mod property;

use super::super::ConnectionKey;
use super::world::*;
use crate::blame::{Parting, PeerFault};
use crate::limits::BACKLOG_WAITING_BYTES_MAX;
use crate::sessions::{Input, Output, Sessions, Terms};
use crate::tree::{Outside, Parked, Touched};
use wirefs_op::limits::REQUESTS_MAX;
use wirefs_op::message::attach::{Leases, Watch};
use wirefs_op::message::recall::{OWN_CHANGE, RecallItem};
use wirefs_op::message::version::FEATURE_LEASES;
use wirefs_op::{NOTAG, Reply, Request, Tag};

fn whole(ino: u64) -> Vec<RecallItem> {
    vec![RecallItem { id: id(ino), name: None }]
}

/// The same job, handed out once more.
fn anew(job: crate::sessions::Job) -> crate::sessions::Job {
    crate::sessions::Job { is_again: true, ..job }
}

/// A has session 1, B session 2, both take leases.
fn two() -> World {
    let mut world = World::leasing();
    world.join_leasing(A, 1);
    world.join_leasing(B, 2);
    world
}

/// B is about to change what A knows. Gives the job, its request, and the recall's serial.
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
fn leases_are_told_to_those_who_ask_for_them() {
    let mut world = World::leasing();
    let (_, leases, _) = world.join_leasing(A, 1);
    assert_eq!(leases, Some(Leases { term_ms: 15_000, kept: false, watch: Watch::Filesystem }));
    assert!(world.is_root_leased);
    world.join(B, 2);
    assert!(world.learn(A, id(7)));
    assert!(!world.learn(B, id(7)), "it did not ask");
}

#[test]
fn server_that_does_not_lease_says_so() {
    let mut world = World::new();
    let (_, leases, _) = world.join_leasing(A, 1);
    assert_eq!((leases, world.is_root_leased), (None, false));
    assert!(!world.learn(A, id(7)));
}

#[test]
fn answers_to_recalls_carry_no_tag_and_belong_to_leases() {
    let mut world = World::leasing();
    world.join_leasing(A, 1);
    let outputs = world.receive(A, Tag(3), recalled(1));
    assert_blamed(&outputs, A, PeerFault::StrayTag(Tag(3)));
    world.join(B, 2);
    let outputs = world.receive(B, NOTAG, recalled(1));
    assert_blamed(&outputs, B, PeerFault::NotAgreed("Recalled"));
}

#[test]
fn answers_to_recalls_that_never_were_do_no_harm() {
    let mut world = two();
    for serial in [0, 1, u64::MAX] {
        assert!(world.receive(A, NOTAG, recalled(serial)).is_empty());
    }
}

#[test]
fn remarks_are_taken_although_all_tags_are_in_use() {
    let mut world = two();
    let (job, serial) = parked(&mut world, 7);
    world.handle(Input::Parked(job.key, job.request.clone()));
    for tag in 0..REQUESTS_MAX {
        world.execute(A, Tag(u16::try_from(tag).unwrap()), stat());
    }
    assert_eq!(executed(&world.receive(A, NOTAG, recalled(serial))), Some(anew(job)));
}

#[test]
fn change_waits_until_who_knows_it_has_forgotten() {
    let mut world = two();
    let (job, serial) = parked(&mut world, 7);
    assert!(world.handle(Input::Parked(job.key, job.request.clone())).is_empty());
    assert_eq!(world.sessions.jobs(), 1);
    let again = executed(&world.receive(A, NOTAG, recalled(serial))).unwrap();
    assert_eq!(again, anew(job.clone()), "the same job, from its beginning");
    assert_eq!(world.touch(job.key, &[Touched::object(id(7))]), (Ok(()), vec![]));
    assert!(!world.learn(A, id(7)), "it is being changed");
    world.handle(Input::Finished(job.key));
    assert!(world.learn(A, id(7)));
}

#[test]
fn answer_may_come_before_the_tree_has_given_the_job_back() {
    let mut world = two();
    let (job, serial) = parked(&mut world, 7);
    assert!(executed(&world.receive(A, NOTAG, recalled(serial))).is_none());
    let again = executed(&world.handle(Input::Parked(job.key, job.request.clone())));
    assert_eq!(again, Some(anew(job)));
}

#[test]
fn parked_change_keeps_its_turn() {
    let mut world = two();
    let (job, serial) = parked(&mut world, 7);
    world.handle(Input::Parked(job.key, job.request.clone()));
    assert!(world.receive(B, Tag(2), put(1)).is_empty(), "it waits for the one before");
    let read = world.execute(B, Tag(3), stat());
    world.handle(Input::Finished(read.key));
    let again = executed(&world.receive(A, NOTAG, recalled(serial))).unwrap();
    let next = executed(&world.handle(Input::Finished(again.key))).unwrap();
    assert_eq!((again.key, next.tag), (job.key, Tag(2)));
}

#[test]
fn own_leases_stay_when_their_holder_changes_something() {
    let mut world = two();
    assert!(world.learn(A, id(7)));
    let job = world.execute(A, Tag(1), put(0));
    assert_eq!(world.touch(job.key, &[Touched::object(id(7))]), (Ok(()), vec![]));
    assert!(world.grant(job.key, id(7)));
}

#[test]
fn sessions_without_leases_recall_others_and_are_told_nothing() {
    let mut world = World::leasing();
    world.join_leasing(A, 1);
    world.join(B, 2);
    let (job, serial) = parked(&mut world, 7);
    world.handle(Input::Parked(job.key, job.request.clone()));
    let again = executed(&world.receive(A, NOTAG, recalled(serial))).unwrap();
    world.handle(Input::Finished(again.key));
    world.learn(B, id(8));
    let change = world.execute(A, Tag(1), put(0));
    assert_eq!(world.touch(change.key, &[Touched::object(id(8))]), (Ok(()), vec![]));
}

#[test]
fn names_that_change_are_recalled_by_themselves() {
    let mut world = two();
    assert!(world.learn(A, id(3)));
    let job = world.execute(B, Tag(1), put(0));
    let (outcome, outputs) = world.touch(job.key, &[Touched::name(id(3), b"new")]);
    assert_eq!(outcome, Err(Parked));
    let items = vec![RecallItem { id: id(3), name: Some(b"new".to_vec()) }];
    assert!(matches!(recalls(&outputs).as_slice(), [(A, _, told)] if *told == items));
}

#[test]
fn names_of_one_directory_are_changed_by_one_at_a_time() {
    let mut world = two();
    let first = world.execute(A, Tag(1), put(0));
    let second = world.execute(B, Tag(1), put(1));
    assert_eq!(world.touch(first.key, &[Touched::name(id(3), b"a")]), (Ok(()), vec![]));
    let (outcome, _) = world.touch(second.key, &[Touched::name(id(3), b"b")]);
    assert_eq!(outcome, Err(Parked));
    world.handle(Input::Parked(second.key, second.request.clone()));
    let again = executed(&world.handle(Input::Finished(first.key)));
    assert_eq!(again, Some(anew(second)));
}

#[test]
fn change_that_only_waits_for_the_disk_holds_nobody_up() {
    let mut world = two();
    let first = world.execute(B, Tag(1), put(0));
    assert!(world.touch(first.key, &[Touched::name(id(3), b"a")]).0.is_ok());
    world.handle(Input::TurnPassed(first.key));
    let second = world.execute(A, Tag(1), put(1));
    assert_eq!(world.touch(second.key, &[Touched::name(id(3), b"b")]), (Ok(()), vec![]));
    assert!(world.handle(Input::Finished(first.key)).is_empty());
}

#[test]
fn changes_from_outside_are_told_and_wait_for_nobody() {
    let mut world = two();
    assert!(world.learn(A, id(7)) && world.learn(B, id(7)));
    let outside = Outside::Changed { id: id(7), name: None, version: None };
    let told = recalls(&world.handle(Input::Outside(outside)));
    assert!(
        matches!(told.as_slice(), [(A, _, one), (B, _, other)] if *one == whole(7) && *other == whole(7))
    );
    assert!(world.learn(A, id(8)));
    let told = recalls(&world.handle(Input::Outside(Outside::Lost)));
    assert!(matches!(told.as_slice(), [(A, _, all), ..] if all.is_empty()));
}

#[test]
fn own_changes_are_told_from_others_by_their_version() {
    let mut world = two();
    assert!(world.learn(A, id(7)));
    let job = world.execute(A, Tag(1), put(0));
    let touched = Touched::object(id(7));
    assert!(world.touch(job.key, std::slice::from_ref(&touched)).0.is_ok());
    world.sessions.changed(world.now, &touched, Some(1), Some(2));
    world.handle(Input::Finished(job.key));
    let report = |version| Input::Outside(Outside::Changed { id: id(7), name: None, version: Some(version) });
    assert!(world.handle(report(2)).is_empty());
    assert_eq!(recalls(&world.handle(report(3))).len(), 1);
}

#[test]
fn report_of_a_change_that_goes_on_is_looked_into_at_its_end() {
    let mut world = World::with(Sessions::leasing(BOOT, Terms::new(Watch::Directories)));
    world.join_leasing(A, 1);
    assert!(world.learn(A, id(7)));
    let touched = Touched::object(id(7));
    let report = |version| Input::Outside(Outside::Changed { id: id(7), name: None, version: Some(version) });
    for (reported, is_own) in [(2, true), (9, false)] {
        let job = world.execute(A, Tag(1), put(0));
        assert!(world.touch(job.key, std::slice::from_ref(&touched)).0.is_ok());
        assert!(world.handle(report(reported)).is_empty());
        world.sessions.changed(world.now, &touched, Some(1), Some(2));
        let outputs = world.handle(Input::Finished(job.key));
        let looks = outputs.contains(&Output::Verify { id: id(7), name: None });
        assert_eq!(looks, !is_own, "{outputs:?}");
    }
}

#[test]
fn requests_that_change_nothing_go_on_while_a_change_waits() {
    let mut world = two();
    let (job, _) = parked(&mut world, 7);
    world.handle(Input::Parked(job.key, job.request));
    assert!(world.learn(A, id(8)));
    assert!(world.learn(B, id(8)));
    assert!(!world.learn(A, id(7)), "somebody waits to change it");
}

#[test]
fn close_that_removes_a_name_waits_like_any_change_and_can_be_given_up() {
    let mut world = two();
    assert!(world.learn(A, id(3)));
    let Request::Get(mut get) = stat() else { unreachable!("stat() is a Tget") };
    get.target.fd = wirefs_op::message::target::Fd(5);
    let job = world.execute(B, Tag(1), Request::Get(get));
    assert!(job.may_park);
    assert_eq!(world.touch(job.key, &[Touched::name(id(3), b"n")]).0, Err(Parked));
    world.handle(Input::Parked(job.key, job.request));
    world.handle(Input::Disconnected(B));
    assert_eq!(world.sessions.jobs(), 0);
}

#[test]
fn draining_server_takes_all_leases_back() {
    let mut world = two();
    assert!(world.learn(A, id(7)));
    let told = recalls(&world.handle(Input::Drain));
    let [(A, serial, all), ..] = told.as_slice() else { panic!("{told:?}") };
    assert!(all.is_empty() && world.sessions.is_recalling() && world.sessions.are_leases_out());
    for (connection, serial) in [(A, *serial), (B, 1)] {
        assert!(world.receive(connection, NOTAG, recalled(serial)).is_empty());
    }
    assert!(!world.sessions.is_recalling() && !world.sessions.are_leases_out());
}

#[test]
fn draining_server_promises_nothing_to_who_attaches() {
    let mut world = World::leasing();
    let mut hello = version_body(1, 1 << 20);
    hello.features = FEATURE_LEASES;
    world.receive(A, NOTAG, Request::Version(hello));
    let outputs = world.receive(A, Tag(0), attach(b""));
    let [Output::Attach { connection, session, .. }] = *outputs.as_slice() else { panic!("{outputs:?}") };
    world.handle(Input::Drain);
    let mut attached = root();
    attached.root.leased = true;
    let outputs = world.handle(Input::Attached { connection, session, result: Ok(attached) });
    let [Output::Reply { reply: Reply::Attach(answer), .. }] = outputs.as_slice() else {
        panic!("{outputs:?}")
    };
    assert!(!answer.root.leased && !world.sessions.are_leases_out());
}

#[test]
fn server_that_stops_waits_for_nobody_who_is_cut_off() {
    let mut world = two();
    let (job, _) = parked(&mut world, 7);
    let late = world.execute(A, Tag(2), put(9));
    world.handle(Input::Parked(job.key, job.request));
    let outputs = world.handle(Input::Stop);
    assert_eq!(closed(&outputs, A), Some(Parting::Stopping));
    assert_eq!(world.sessions.jobs(), 1, "what was put aside is dropped");
    assert!(world.sessions.are_leases_out());
    let outputs = world.handle(Input::Parked(late.key, late.request));
    assert!(matches!(outputs.as_slice(), [Output::EndSession(_)]), "{outputs:?}");
    assert_eq!((world.sessions.jobs(), world.sessions.sessions()), (0, 0));
}

#[test]
fn change_that_is_given_up_at_the_end_takes_those_behind_it_along() {
    for given_back in [true, false] {
        let mut world = two();
        let (job, _) = parked(&mut world, 7);
        if given_back {
            world.handle(Input::Parked(job.key, job.request.clone()));
        }
        assert_eq!(executed(&world.receive(B, Tag(2), put(1))), None, "it waits for its turn");
        let mut outputs = world.handle(Input::Stop);
        if !given_back {
            outputs.extend(world.handle(Input::Parked(job.key, job.request)));
        }
        assert_eq!(executed(&outputs), None, "the one before it was never done");
        assert_eq!(world.sessions.jobs(), 0);
    }
}

#[test]
fn more_is_taken_off_the_wire_while_a_change_waits_for_others() {
    let mut world = two();
    let (job, serial) = parked(&mut world, 7);
    world.handle(Input::Parked(job.key, job.request));
    let mut sent = 0;
    let mut send = |world: &mut World| {
        sent += 1;
        world.receive(B, Tag(sent + 1), put_bytes(u64::from(sent), 128 * 1024));
        usize::from(sent) * 128 * 1024
    };
    while send(&mut world) < BACKLOG_WAITING_BYTES_MAX - 1024 * 1024 {
        assert!(!world.sessions.is_behind(B), "its answers to recalls would not come through");
    }
    while !world.sessions.is_behind(B) {
        assert!(send(&mut world) < 2 * BACKLOG_WAITING_BYTES_MAX);
    }
    assert!(executed(&world.receive(A, NOTAG, recalled(serial))).is_some());
    assert!(world.sessions.is_behind(B), "its own work is what it waits for now");
}

#[test]
fn change_that_goes_on_instead_of_waiting_is_not_granted_to_who_read_before_it() {
    let mut world = two();
    assert!(world.learn(A, id(7)));
    let before = world.execute(A, Tag(5), stat());
    let job = world.execute(B, Tag(1), put(0));
    assert_eq!(world.touch(job.key, &[Touched::object(id(7))]).0, Err(Parked));
    world.handle(Input::Finished(job.key));
    assert!(!world.grant(before.key, id(7)));
    world.handle(Input::Finished(before.key));
    assert!(world.learn(A, id(7)));
}

#[test]
fn what_was_touched_alone_counts_for_those_who_come_later() {
    let mut world = World::leasing();
    world.join_leasing(A, 1);
    let job = world.execute(A, Tag(1), put(0));
    let touched = [Touched::name(id(3), b"n"), Touched::object(id(7))];
    assert_eq!(world.touch(job.key, &touched), (Ok(()), vec![]));
    assert!(world.grant(job.key, id(7)), "one's own");
    world.join_leasing(B, 2);
    assert!(!world.learn(B, id(7)) && !world.learn(B, id(3)));
    let other = world.execute(B, Tag(1), put(1));
    assert_eq!(world.touch(other.key, &[Touched::name(id(3), b"m")]).0, Err(Parked));
    world.handle(Input::Parked(other.key, other.request.clone()));
    assert_eq!(executed(&world.handle(Input::Finished(job.key))), Some(anew(other)));
    assert!(world.learn(B, id(7)));
}

#[test]
fn who_is_alone_hears_of_what_its_own_change_does_without_its_knowing() {
    let mut world = World::leasing();
    world.join_leasing(A, 1);
    assert!(world.learn(A, id(7)) && world.learn(A, id(8)));
    let job = world.execute(A, Tag(1), put(0));
    assert_eq!(world.touch(job.key, &[Touched::name(id(3), b"n"), Touched::object(id(8))]), (Ok(()), vec![]));
    let (outcome, outputs) = world.touch(job.key, &[Touched::with_other_names(id(7))]);
    assert_eq!(outcome, Ok(()), "it waits for nobody");
    let is_told = |told: &[(ConnectionKey, u64, Vec<RecallItem>)]| matches!(told, [(A, serial, items)] if *items == whole(7) && serial & OWN_CHANGE != 0);
    assert!(is_told(&recalls(&outputs)), "{outputs:?}");
    // All that the job touched counts for who comes before its end.
    world.join_leasing(B, 2);
    assert!(!world.learn(B, id(8)) && !world.learn(B, id(3)));
    world.handle(Input::Finished(job.key));
    assert!(world.learn(B, id(8)));
}

#[test]
fn who_was_there_before_is_not_forgotten_when_a_client_is_alone() {
    let mut world = two();
    assert!(world.learn(A, id(7)));
    world.handle(Input::Disconnected(A));
    world.now = world.now + crate::limits::GRACE;
    world.handle(Input::Tick);
    assert_eq!(world.sessions.sessions(), 1);
    let job = world.execute(B, Tag(1), put(0));
    assert_eq!(world.touch(job.key, &[Touched::object(id(7))]), (Ok(()), vec![]), "its leases have run out");
    world.handle(Input::Finished(job.key));
    let (_, leases, outputs) = world.join_leasing(crate::sessions::ConnectionKey(3), 1);
    assert!(leases.unwrap().kept);
    assert!(matches!(recalls(&outputs).as_slice(), [(_, _, items)] if *items == whole(7)));
}
