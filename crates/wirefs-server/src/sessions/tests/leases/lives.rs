//! Leases over time: silence, lost connections, sessions that end and come back.

use super::*;
use crate::limits::{GRACE, RECOVERY};
use crate::sessions::{ConnectionKey, Sessions, Terms};
use std::time::Duration;
use wirefs_op::Time;
use wirefs_op::message::recall::{END_SESSION, RELEASE_ALL};
use wirefs_op::message::version::SessionId;

const C: ConnectionKey = ConnectionKey(3);

fn later(world: &mut World, seconds: u64) -> Vec<Output> {
    world.now = world.now + Duration::from_secs(seconds);
    world.handle(Input::Tick)
}

/// Lets time pass while this connection pings.
fn later_pinging(world: &mut World, connection: ConnectionKey, seconds: u64) -> Vec<Output> {
    let mut outputs = Vec::new();
    for _ in 0..seconds {
        outputs.extend(later(world, 1));
        outputs.extend(world.receive(connection, Tag(800), ping()));
    }
    outputs
}

#[test]
fn silent_holder_is_waited_for_until_its_leases_have_run_out() {
    let mut world = two();
    let (job, _) = parked(&mut world, 7);
    world.handle(Input::Parked(job.key, job.request.clone()));
    let until = world.sessions.deadline().unwrap();
    assert!(until <= world.now + RECOVERY);
    assert_eq!(executed(&later_pinging(&mut world, B, RECOVERY.as_secs() - 2)), None);
    let again = executed(&later_pinging(&mut world, B, 3));
    assert_eq!(again, Some(anew(job)), "its connection stands still");
}

#[test]
fn holder_that_is_heard_and_does_not_answer_loses_its_connection() {
    let mut world = two();
    let (job, _) = parked(&mut world, 7);
    world.handle(Input::Parked(job.key, job.request.clone()));
    let outputs = later_pinging(&mut world, A, 12);
    assert_eq!(closed(&outputs, A), Some(Parting::Unresponsive));
    assert_eq!(executed(&outputs), None, "it may believe its leases still");
    assert_eq!(executed(&later_pinging(&mut world, B, RECOVERY.as_secs() + 1)), Some(anew(job)));
    let (_, leases, _) = world.join_leasing(C, 1);
    assert!(!leases.unwrap().kept);
}

#[test]
fn who_says_that_it_rests_is_not_waited_for_and_hears_what_it_missed() {
    let mut world = two();
    assert!(world.learn(A, id(7)) && world.learn(A, id(8)));
    assert!(world.receive(A, NOTAG, recalled(RELEASE_ALL)).is_empty());
    world.handle(Input::Disconnected(A));
    let job = world.execute(B, Tag(1), put(0));
    assert_eq!(world.touch(job.key, &[Touched::object(id(7))]), (Ok(()), vec![]));
    world.handle(Input::Finished(job.key));
    let (resumed, leases, outputs) = world.join_leasing(C, 1);
    assert!(resumed && leases.unwrap().kept);
    assert_eq!(recalls(&outputs).len(), 1, "{outputs:?}");
}

#[test]
fn what_was_missed_is_told_right_behind_the_attach() {
    let mut world = two();
    assert!(world.learn(A, id(7)) && world.learn(A, id(8)));
    world.handle(Input::Disconnected(A));
    later_pinging(&mut world, B, RECOVERY.as_secs() + 1);
    let job = world.execute(B, Tag(1), put(0));
    assert_eq!(world.touch(job.key, &[Touched::object(id(7))]), (Ok(()), vec![]));
    world.handle(Input::Finished(job.key));
    let (resumed, leases, outputs) = world.join_leasing(C, 1);
    assert!(resumed && leases.unwrap().kept);
    assert!(matches!(recalls(&outputs).as_slice(), [(C, _, items)] if *items == whole(7)), "{outputs:?}");
    let other = world.execute(B, Tag(1), put(1));
    assert_eq!(world.touch(other.key, &[Touched::object(id(8))]).0, Err(Parked), "it is known still");
}

#[test]
fn much_that_was_missed_comes_in_messages_that_can_be_read() {
    let mut world = two();
    let ids: Vec<u64> = (10..1010).collect();
    assert!(ids.iter().all(|ino| world.learn(A, id(*ino))));
    world.handle(Input::Disconnected(A));
    later(&mut world, RECOVERY.as_secs() + 1);
    let job = world.execute(B, Tag(1), put(0));
    let touched: Vec<Touched> = ids.iter().map(|ino| Touched::object(id(*ino))).collect();
    assert!(world.touch(job.key, &touched).0.is_ok());
    world.handle(Input::Finished(job.key));
    let (_, _, outputs) = world.join_leasing(C, 1);
    let told = outputs.iter().filter_map(|output| match output {
        Output::Reply { tag, reply, .. } => wirefs_op::Reply::decode(reply.encode(*tag).to_body()).ok(),
        _ => None,
    });
    let items = told.filter_map(|(_, reply)| match reply {
        wirefs_op::Reply::Recall(recall) => Some(recall.items),
        _ => None,
    });
    let mut told: Vec<u64> = items.flatten().map(|item| item.id.ino).collect();
    told.sort_unstable();
    assert_eq!(told, ids);
}

#[test]
fn leases_outlive_the_session_that_they_were_made_in() {
    let mut world = two();
    assert!(world.learn(A, id(7)));
    world.handle(Input::Disconnected(A));
    later_pinging(&mut world, B, GRACE.as_secs() + 1);
    assert_eq!(world.sessions.sessions(), 1);
    later_pinging(&mut world, B, 3600);
    let (resumed, leases, outputs) = world.join_leasing(C, 1);
    assert!(!resumed && leases.unwrap().kept);
    assert!(recalls(&outputs).is_empty(), "nobody changed anything");
}

#[test]
fn leases_are_forgotten_after_a_day() {
    let mut world = two();
    assert!(world.learn(A, id(7)));
    world.handle(Input::Disconnected(A));
    later(&mut world, 24 * 3600 + 1);
    let (_, leases, _) = world.join_leasing(C, 1);
    assert!(!leases.unwrap().kept);
}

#[test]
fn session_that_comes_back_without_leases_gets_none() {
    let mut world = two();
    assert!(world.learn(A, id(7)));
    world.handle(Input::Disconnected(A));
    assert!(world.join(C, 1));
    assert!(!world.learn(C, id(8)));
}

#[test]
fn what_a_session_changes_while_it_takes_no_leases_it_is_told_when_it_takes_them_again() {
    let mut world = two();
    assert!(world.learn(A, id(7)));
    world.handle(Input::Disconnected(A));
    later(&mut world, RECOVERY.as_secs() + 1);
    world.join(C, 1);
    let job = world.execute(C, Tag(1), put(0));
    assert_eq!(world.touch(job.key, &[Touched::object(id(7))]), (Ok(()), vec![]));
    world.handle(Input::Finished(job.key));
    world.handle(Input::Disconnected(C));
    let (_, leases, outputs) = world.join_leasing(ConnectionKey(4), 1);
    assert!(leases.unwrap().kept);
    assert!(matches!(recalls(&outputs).as_slice(), [(_, _, items)] if *items == whole(7)));
}

#[test]
fn change_whose_sender_is_gone_is_told_to_the_sender_as_well() {
    let mut world = two();
    assert!(world.learn(A, id(7)));
    let job = world.execute(A, Tag(1), put(0));
    world.handle(Input::Disconnected(A));
    assert_eq!(world.touch(job.key, &[Touched::object(id(7))]).0, Err(Parked));
    world.handle(Input::Parked(job.key, job.request.clone()));
    let (_, _, outputs) = world.join_leasing(C, 1);
    let told = recalls(&outputs);
    let [(C, serial, items)] = told.as_slice() else { panic!("{outputs:?}") };
    assert_eq!(*items, whole(7));
    let again = executed(&world.receive(C, NOTAG, recalled(*serial))).unwrap();
    assert_eq!((again.key, again.connection), (job.key, None));
}

#[test]
fn nothing_changes_while_leases_of_a_former_server_may_be_believed() {
    let until = Time(0) + RECOVERY;
    let terms = Terms { recovering_until: Some(until), ..Terms::new(Watch::Directories) };
    let mut world = World::with(Sessions::leasing(BOOT, terms));
    world.join_leasing(A, 1);
    world.join(B, 2);
    let jobs = [world.execute(A, Tag(1), put(0)), world.execute(B, Tag(1), put(1))];
    for (ino, job) in [7, 8].into_iter().zip(&jobs) {
        assert_eq!(world.touch(job.key, &[Touched::object(id(ino))]).0, Err(Parked));
        assert!(world.handle(Input::Parked(job.key, job.request.clone())).is_empty());
    }
    assert!(world.learn(A, id(9)), "what is read may be believed");
    assert_eq!(world.sessions.deadline(), Some(until));
    world.now = until;
    let started = world.handle(Input::Tick).into_iter().filter(|output| matches!(output, Output::Execute(_)));
    assert_eq!(started.count(), 2);
}

/// A server that follows one which had promised something to these sessions.
fn following(sessions: &[u8]) -> World {
    let terms = Terms { recovering_until: Some(Time(0) + RECOVERY), ..Terms::new(Watch::Filesystem) };
    let believers = sessions.iter().map(|id| SessionId([*id; 16])).collect();
    World::with(Sessions::leasing(BOOT, terms).awaiting(believers))
}

/// The one that joined last is told to forget everything. With which serial?
fn told_to_forget_all(outputs: &[Output], whom: ConnectionKey) -> u64 {
    let recalls = recalls(outputs);
    let [(told, serial, items)] = recalls.as_slice() else { panic!("{outputs:?}") };
    assert!(*told == whom && items.is_empty(), "{outputs:?}");
    *serial
}

// S-87
#[test]
fn changes_wait_until_all_who_were_promised_something_are_back_and_have_forgotten_it() {
    let mut world = following(&[1, 2]);
    let (_, leases, outputs) = world.join_leasing(A, 1);
    assert!(!leases.unwrap().kept);
    let first = told_to_forget_all(&outputs, A);
    let job = world.execute(A, Tag(1), put(0));
    assert_eq!(world.touch(job.key, &[Touched::object(id(7))]).0, Err(Parked));
    world.handle(Input::Parked(job.key, job.request.clone()));
    assert!(!world.learn(A, id(9)), "what it forgets now is not promised anew");
    assert_eq!(executed(&world.receive(A, NOTAG, recalled(first))), None, "the other one is not back");
    assert!(world.sessions.is_recovering(world.now) && world.learn(A, id(9)));
    let (_, _, outputs) = world.join_leasing(B, 2);
    let second = told_to_forget_all(&outputs, B);
    assert_eq!(executed(&world.receive(B, Tag(800), ping())), None, "its kernel may believe it still");
    assert_eq!(executed(&world.receive(B, NOTAG, recalled(second))), Some(anew(job)));
    assert!(!world.sessions.is_recovering(world.now));
}

// S-87
#[test]
fn who_does_not_come_back_is_waited_for_as_long_as_it_may_believe_what_it_knew() {
    let mut world = following(&[1, 2]);
    let (_, _, outputs) = world.join_leasing(A, 1);
    world.receive(A, NOTAG, recalled(told_to_forget_all(&outputs, A)));
    let (_, _, outputs) = world.join_leasing(B, 3);
    assert!(recalls(&outputs).is_empty(), "it was promised nothing before");
    let job = world.execute(B, Tag(1), put(0));
    assert_eq!(world.touch(job.key, &[Touched::object(id(7))]).0, Err(Parked));
    world.handle(Input::Parked(job.key, job.request.clone()));
    assert_eq!(executed(&later_pinging(&mut world, B, RECOVERY.as_secs() - 2)), None);
    assert_eq!(executed(&later_pinging(&mut world, B, 3)), Some(anew(job)));
}

// S-87
#[test]
fn a_session_that_is_over_is_waited_for_no_longer() {
    let mut world = following(&[1]);
    world.join_leasing(B, 2);
    let job = world.execute(B, Tag(1), put(0));
    assert_eq!(world.touch(job.key, &[Touched::object(id(7))]).0, Err(Parked));
    world.handle(Input::Parked(job.key, job.request.clone()));
    let (_, _, outputs) = world.join_leasing(A, 1);
    told_to_forget_all(&outputs, A);
    assert_eq!(executed(&world.receive(A, NOTAG, recalled(END_SESSION))), Some(anew(job)));
    assert!(!world.sessions.is_recovering(world.now));
}

#[test]
fn who_goes_away_before_it_has_forgotten_is_told_again() {
    let mut world = following(&[1]);
    let (_, _, outputs) = world.join_leasing(A, 1);
    told_to_forget_all(&outputs, A);
    world.handle(Input::Disconnected(A));
    let (_, _, outputs) = world.join_leasing(C, 1);
    let told = recalls(&outputs);
    assert!(told.iter().all(|(whom, _, items)| *whom == C && items.is_empty()), "{outputs:?}");
    assert!(world.sessions.is_recovering(world.now));
    for (_, serial, _) in told {
        world.receive(C, NOTAG, recalled(serial));
    }
    assert!(!world.sessions.is_recovering(world.now));
}

#[test]
fn where_nobody_was_promised_anything_nobody_is_waited_for() {
    let world = following(&[]);
    assert!(!world.sessions.is_recovering(world.now));
}

#[test]
fn those_believe_who_may_be_promised_something_until_they_are_gone_and_know_nothing() {
    let mut world = World::leasing();
    let believers = |world: &World| world.sessions.believers().into_iter().collect::<Vec<SessionId>>();
    world.join(B, 2);
    assert_eq!(believers(&world), [], "it takes no leases");
    world.join_leasing(A, 1);
    assert_eq!(believers(&world), [SessionId([1; 16])]);
    assert!(world.learn(A, id(7)));
    world.handle(Input::Disconnected(A));
    assert_eq!(believers(&world), [SessionId([1; 16])], "it may believe that still");
    later_pinging(&mut world, B, RECOVERY.as_secs() + 1);
    assert_eq!(believers(&world), []);
}
