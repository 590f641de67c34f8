//! Leases of silent, disconnected, ended and returning sessions.

use super::*;
use crate::limits::{RECOVERY_PERIOD, SESSION_TIMEOUT};
use crate::sessions::{ConnectionKey, LeaseTerms, Sessions};
use std::time::Duration;
use wirefs_op::Time;
use wirefs_op::message::recall::{END_SESSION, RELEASE_ALL};
use wirefs_op::message::version::SessionId;

const C: ConnectionKey = ConnectionKey(3);

fn later(world: &mut World, seconds: u64) -> Vec<ServerOutput> {
    world.now = world.now + Duration::from_secs(seconds);
    world.handle(ServerInput::Tick)
}

/// Lets time pass while this connection pings.
fn later_pinging(world: &mut World, connection: ConnectionKey, seconds: u64) -> Vec<ServerOutput> {
    let mut outputs = Vec::new();
    for _ in 0..seconds {
        outputs.extend(later(world, 1));
        outputs.extend(world.receive(connection, Tag(800), ping()));
    }
    outputs
}

#[test]
fn change_waits_for_a_silent_holder_until_its_leases_expire() {
    let mut world = two();
    let (job, _) = parked(&mut world, 7);
    world.handle(ServerInput::Parked(job.key, job.request.clone()));
    let until = world.sessions.deadline().unwrap();
    assert!(until <= world.now + RECOVERY_PERIOD);
    assert_eq!(executed(&later_pinging(&mut world, B, RECOVERY_PERIOD.as_secs() - 2)), None);
    let again = executed(&later_pinging(&mut world, B, 3));
    assert_eq!(again, Some(retried(job)), "the holder is silent");
}

#[test]
fn holder_that_does_not_answer_loses_its_connection() {
    let mut world = two();
    let (job, _) = parked(&mut world, 7);
    world.handle(ServerInput::Parked(job.key, job.request.clone()));
    let outputs = later_pinging(&mut world, A, 12);
    assert_eq!(closed(&outputs, A), Some(CloseReason::Unresponsive));
    assert_eq!(executed(&outputs), None, "its leases are still valid");
    assert_eq!(executed(&later_pinging(&mut world, B, RECOVERY_PERIOD.as_secs() + 1)), Some(retried(job)));
    let (_, leases, _) = world.join_leasing(C, 1);
    assert!(!leases.unwrap().kept);
}

#[test]
fn holder_that_released_all_leases_gets_missed_recalls() {
    let mut world = two();
    assert!(world.learn(A, id(7)) && world.learn(A, id(8)));
    assert!(world.receive(A, NOTAG, recalled(RELEASE_ALL)).is_empty());
    world.handle(ServerInput::Disconnected(A));
    let job = world.execute(B, Tag(1), put(0));
    assert_eq!(world.touch(job.key, &[Touched::object(id(7))]), (Ok(()), vec![]));
    world.handle(ServerInput::Finished(job.key));
    let (resumed, leases, outputs) = world.join_leasing(C, 1);
    assert!(resumed && leases.unwrap().kept);
    assert_eq!(recalls(&outputs).len(), 1, "{outputs:?}");
}

#[test]
fn missed_recalls_follow_the_attach() {
    let mut world = two();
    assert!(world.learn(A, id(7)) && world.learn(A, id(8)));
    world.handle(ServerInput::Disconnected(A));
    later_pinging(&mut world, B, RECOVERY_PERIOD.as_secs() + 1);
    let job = world.execute(B, Tag(1), put(0));
    assert_eq!(world.touch(job.key, &[Touched::object(id(7))]), (Ok(()), vec![]));
    world.handle(ServerInput::Finished(job.key));
    let (resumed, leases, outputs) = world.join_leasing(C, 1);
    assert!(resumed && leases.unwrap().kept);
    assert!(matches!(recalls(&outputs).as_slice(), [(C, _, items)] if *items == whole(7)), "{outputs:?}");
    let other = world.execute(B, Tag(1), put(1));
    assert_eq!(world.touch(other.key, &[Touched::object(id(8))]).0, Err(Parked), "the lease is still held");
}

#[test]
fn many_missed_recalls_are_split_into_valid_messages() {
    let mut world = two();
    let ids: Vec<u64> = (10..1010).collect();
    assert!(ids.iter().all(|ino| world.learn(A, id(*ino))));
    world.handle(ServerInput::Disconnected(A));
    later(&mut world, RECOVERY_PERIOD.as_secs() + 1);
    let job = world.execute(B, Tag(1), put(0));
    let touched: Vec<Touched> = ids.iter().map(|ino| Touched::object(id(*ino))).collect();
    assert!(world.touch(job.key, &touched).0.is_ok());
    world.handle(ServerInput::Finished(job.key));
    let (_, _, outputs) = world.join_leasing(C, 1);
    let replies = outputs.iter().filter_map(|output| match output {
        ServerOutput::Reply { tag, reply, .. } => wirefs_op::Reply::decode(reply.encode(*tag).to_body()).ok(),
        _ => None,
    });
    let items = replies.filter_map(|(_, reply)| match reply {
        wirefs_op::Reply::Recall(recall) => Some(recall.items),
        _ => None,
    });
    let mut inodes: Vec<u64> = items.flatten().map(|item| item.id.ino).collect();
    inodes.sort_unstable();
    assert_eq!(inodes, ids);
}

#[test]
fn leases_outlive_their_session() {
    let mut world = two();
    assert!(world.learn(A, id(7)));
    world.handle(ServerInput::Disconnected(A));
    later_pinging(&mut world, B, SESSION_TIMEOUT.as_secs() + 1);
    assert_eq!(world.sessions.sessions(), 1);
    later_pinging(&mut world, B, 3600);
    let (resumed, leases, outputs) = world.join_leasing(C, 1);
    assert!(!resumed && leases.unwrap().kept);
    assert!(recalls(&outputs).is_empty(), "no object changed");
}

#[test]
fn leases_are_removed_after_a_day() {
    let mut world = two();
    assert!(world.learn(A, id(7)));
    world.handle(ServerInput::Disconnected(A));
    later(&mut world, 24 * 3600 + 1);
    let (_, leases, _) = world.join_leasing(C, 1);
    assert!(!leases.unwrap().kept);
}

#[test]
fn session_that_returns_without_leases_gets_none() {
    let mut world = two();
    assert!(world.learn(A, id(7)));
    world.handle(ServerInput::Disconnected(A));
    assert!(world.join(C, 1));
    assert!(!world.learn(C, id(8)));
}

#[test]
fn own_changes_without_leases_are_recalled_once_the_session_takes_leases_again() {
    let mut world = two();
    assert!(world.learn(A, id(7)));
    world.handle(ServerInput::Disconnected(A));
    later(&mut world, RECOVERY_PERIOD.as_secs() + 1);
    world.join(C, 1);
    let job = world.execute(C, Tag(1), put(0));
    assert_eq!(world.touch(job.key, &[Touched::object(id(7))]), (Ok(()), vec![]));
    world.handle(ServerInput::Finished(job.key));
    world.handle(ServerInput::Disconnected(C));
    let (_, leases, outputs) = world.join_leasing(ConnectionKey(4), 1);
    assert!(leases.unwrap().kept);
    assert!(matches!(recalls(&outputs).as_slice(), [(_, _, items)] if *items == whole(7)));
}

#[test]
fn change_without_its_connection_is_recalled_from_its_own_session() {
    let mut world = two();
    assert!(world.learn(A, id(7)));
    let job = world.execute(A, Tag(1), put(0));
    world.handle(ServerInput::Disconnected(A));
    assert_eq!(world.touch(job.key, &[Touched::object(id(7))]).0, Err(Parked));
    world.handle(ServerInput::Parked(job.key, job.request.clone()));
    let (_, _, outputs) = world.join_leasing(C, 1);
    let sent = recalls(&outputs);
    let [(C, serial, items)] = sent.as_slice() else { panic!("{outputs:?}") };
    assert_eq!(*items, whole(7));
    let again = executed(&world.receive(C, NOTAG, recalled(*serial))).unwrap();
    assert_eq!((again.key, again.connection), (job.key, None));
}

#[test]
fn changes_wait_during_recovery() {
    let until = Time(0) + RECOVERY_PERIOD;
    let terms = LeaseTerms { recovering_until: Some(until), ..LeaseTerms::new(Watch::Directories) };
    let mut world = World::with(Sessions::leasing(BOOT, terms));
    world.join_leasing(A, 1);
    world.join(B, 2);
    let jobs = [world.execute(A, Tag(1), put(0)), world.execute(B, Tag(1), put(1))];
    for (ino, job) in [7, 8].into_iter().zip(&jobs) {
        assert_eq!(world.touch(job.key, &[Touched::object(id(ino))]).0, Err(Parked));
        assert!(world.handle(ServerInput::Parked(job.key, job.request.clone())).is_empty());
    }
    assert!(world.learn(A, id(9)), "reads get leases");
    assert_eq!(world.sessions.deadline(), Some(until));
    world.now = until;
    let started = world
        .handle(ServerInput::Tick)
        .into_iter()
        .filter(|output| matches!(output, ServerOutput::Execute(_)));
    assert_eq!(started.count(), 2);
}

/// A server whose predecessor ended uncleanly, with leases held by these sessions.
fn following(sessions: &[u8]) -> World {
    let terms = LeaseTerms {
        recovering_until: Some(Time(0) + RECOVERY_PERIOD),
        ..LeaseTerms::new(Watch::Filesystem)
    };
    let possible_holders = sessions.iter().map(|id| SessionId([*id; 16])).collect();
    World::with(Sessions::leasing(BOOT, terms).awaiting_holders(possible_holders))
}

/// The serial of the recall of everything from a session that has just attached.
fn full_recall_serial(outputs: &[ServerOutput], whom: ConnectionKey) -> u64 {
    let recalls = recalls(outputs);
    let [(connection, serial, items)] = recalls.as_slice() else { panic!("{outputs:?}") };
    assert!(*connection == whom && items.is_empty(), "{outputs:?}");
    *serial
}

// S-87
#[test]
fn changes_wait_until_all_awaited_holders_have_answered() {
    let mut world = following(&[1, 2]);
    let (_, leases, outputs) = world.join_leasing(A, 1);
    assert!(!leases.unwrap().kept);
    let first = full_recall_serial(&outputs, A);
    let job = world.execute(A, Tag(1), put(0));
    assert_eq!(world.touch(job.key, &[Touched::object(id(7))]).0, Err(Parked));
    world.handle(ServerInput::Parked(job.key, job.request.clone()));
    assert!(!world.learn(A, id(9)), "no lease while a full recall is pending");
    assert_eq!(executed(&world.receive(A, NOTAG, recalled(first))), None, "the other holder is absent");
    assert!(world.sessions.is_recovering(world.now) && world.learn(A, id(9)));
    let (_, _, outputs) = world.join_leasing(B, 2);
    let second = full_recall_serial(&outputs, B);
    assert_eq!(executed(&world.receive(B, Tag(800), ping())), None, "its kernel may still have cached data");
    assert_eq!(executed(&world.receive(B, NOTAG, recalled(second))), Some(retried(job)));
    assert!(!world.sessions.is_recovering(world.now));
}

// S-87
#[test]
fn changes_wait_for_absent_holders_until_their_leases_expire() {
    let mut world = following(&[1, 2]);
    let (_, _, outputs) = world.join_leasing(A, 1);
    world.receive(A, NOTAG, recalled(full_recall_serial(&outputs, A)));
    let (_, _, outputs) = world.join_leasing(B, 3);
    assert!(recalls(&outputs).is_empty(), "it had no leases before");
    let job = world.execute(B, Tag(1), put(0));
    assert_eq!(world.touch(job.key, &[Touched::object(id(7))]).0, Err(Parked));
    world.handle(ServerInput::Parked(job.key, job.request.clone()));
    assert_eq!(executed(&later_pinging(&mut world, B, RECOVERY_PERIOD.as_secs() - 2)), None);
    assert_eq!(executed(&later_pinging(&mut world, B, 3)), Some(retried(job)));
}

// S-87
#[test]
fn changes_do_not_wait_for_an_ended_session() {
    let mut world = following(&[1]);
    world.join_leasing(B, 2);
    let job = world.execute(B, Tag(1), put(0));
    assert_eq!(world.touch(job.key, &[Touched::object(id(7))]).0, Err(Parked));
    world.handle(ServerInput::Parked(job.key, job.request.clone()));
    let (_, _, outputs) = world.join_leasing(A, 1);
    full_recall_serial(&outputs, A);
    assert_eq!(executed(&world.receive(A, NOTAG, recalled(END_SESSION))), Some(retried(job)));
    assert!(!world.sessions.is_recovering(world.now));
}

#[test]
fn holder_that_left_before_its_answer_gets_the_recall_again() {
    let mut world = following(&[1]);
    let (_, _, outputs) = world.join_leasing(A, 1);
    full_recall_serial(&outputs, A);
    world.handle(ServerInput::Disconnected(A));
    let (_, _, outputs) = world.join_leasing(C, 1);
    let sent = recalls(&outputs);
    assert!(sent.iter().all(|(whom, _, items)| *whom == C && items.is_empty()), "{outputs:?}");
    assert!(world.sessions.is_recovering(world.now));
    for (_, serial, _) in sent {
        world.receive(C, NOTAG, recalled(serial));
    }
    assert!(!world.sessions.is_recovering(world.now));
}

#[test]
fn changes_do_not_wait_without_possible_holders() {
    let world = following(&[]);
    assert!(!world.sessions.is_recovering(world.now));
}

#[test]
fn possible_holders_are_attached_ones_and_those_with_leases() {
    let mut world = World::leasing();
    let possible_holders =
        |world: &World| world.sessions.possible_holders().into_iter().collect::<Vec<SessionId>>();
    world.join(B, 2);
    assert_eq!(possible_holders(&world), [], "it takes no leases");
    world.join_leasing(A, 1);
    assert_eq!(possible_holders(&world), [SessionId([1; 16])]);
    assert!(world.learn(A, id(7)));
    world.handle(ServerInput::Disconnected(A));
    assert_eq!(possible_holders(&world), [SessionId([1; 16])], "its lease is still valid");
    later_pinging(&mut world, B, RECOVERY_PERIOD.as_secs() + 1);
    assert_eq!(possible_holders(&world), []);
}
