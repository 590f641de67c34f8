//! Repeated changes.

use super::world::*;
use crate::blame::PeerFault;
use crate::sessions::{ConnectionKey, ServerInput, ServerOutput};
use wirefs_op::limits::{LEDGER_MAX, REQUESTS_MAX};
use wirefs_op::message::error::Rerror;
use wirefs_op::message::number::Tnumber;
use wirefs_op::message::remove::Rremove;
use wirefs_op::{Errno, NOTAG, Reply, Request, Stat, Tag};

const C: ConnectionKey = ConnectionKey(3);

fn number(number: u64, answered: u64) -> Request {
    Request::Number(Tnumber { number, answered })
}

/// A reply that differs for each errno.
fn reply(errno: Errno) -> Reply {
    Reply::Error(Rerror::from(errno))
}

fn sent(connection: ConnectionKey, tag: Tag, errno: Errno) -> ServerOutput {
    ServerOutput::Reply { connection, tag, reply: reply(errno) }
}

/// Connection A attached to session 1, whose next change has number 1.
fn numbered() -> World {
    let mut world = World::attached();
    assert!(world.receive(A, NOTAG, number(1, 1)).is_empty());
    world
}

#[test]
fn a_repeated_change_gets_the_same_reply_and_is_not_executed() {
    let mut world = numbered();
    let job = world.execute(A, Tag(1), put(1));
    assert!(job.is_numbered);
    let outputs = world.handle(ServerInput::Answered(job.key, reply(Errno::Exists)));
    assert_eq!(outputs, [sent(A, Tag(1), Errno::Exists)]);
    world.handle(ServerInput::Finished(job.key));
    world.handle(ServerInput::Disconnected(A));

    assert!(world.join(B, 1));
    world.receive(B, NOTAG, number(1, 1));
    assert_eq!(world.receive(B, Tag(7), put(1)), [sent(B, Tag(7), Errno::Exists)]);
    assert_eq!(world.sessions.jobs(), 0);
    // The next change is new.
    world.execute(B, Tag(7), put(2));
}

#[test]
fn a_running_change_is_answered_on_the_latest_connection() {
    let mut world = numbered();
    let job = world.execute(A, Tag(1), put(1));
    world.handle(ServerInput::Disconnected(A));
    assert!(world.join(B, 1));
    world.receive(B, NOTAG, number(1, 1));
    assert!(world.receive(B, Tag(7), put(1)).is_empty());
    assert_eq!(world.sessions.jobs(), 1);
    let outputs = world.handle(ServerInput::Answered(job.key, reply(Errno::NoSpace)));
    assert_eq!(outputs, [sent(B, Tag(7), Errno::NoSpace)]);
    world.handle(ServerInput::Finished(job.key));
    // The tag is free again.
    world.execute(B, Tag(7), stat());
}

#[test]
fn a_queued_change_is_answered_on_the_latest_connection() {
    let mut world = numbered();
    let first = world.execute(A, Tag(1), put(1));
    assert!(world.receive(A, Tag(2), put(2)).is_empty());
    assert!(world.join(C, 1), "the newer connection takes the session over");
    world.receive(C, NOTAG, number(2, 1));
    assert!(world.receive(C, Tag(5), put(2)).is_empty());
    world.handle(ServerInput::Answered(first.key, reply(Errno::Io)));
    let outputs = world.handle(ServerInput::Finished(first.key));
    let second = executed(&outputs).expect("it got the write slot");
    assert_eq!((second.connection, second.tag), (Some(C), Tag(5)));
    assert_eq!(
        world.handle(ServerInput::Answered(second.key, reply(Errno::Io))),
        [sent(C, Tag(5), Errno::Io)]
    );
}

#[test]
fn a_reply_without_a_connection_is_kept_for_the_next_one() {
    let mut world = numbered();
    let job = world.execute(A, Tag(1), put(1));
    world.handle(ServerInput::Disconnected(A));
    assert!(world.handle(ServerInput::Answered(job.key, reply(Errno::Io))).is_empty());
    world.handle(ServerInput::Finished(job.key));
    world.join(B, 1);
    world.receive(B, NOTAG, number(1, 1));
    assert_eq!(world.receive(B, Tag(2), put(1)), [sent(B, Tag(2), Errno::Io)]);
}

/// Leases that were granted over a connection do not hold on the next one.
#[test]
fn a_repeated_reply_grants_no_leases() {
    let leased = |leased| {
        let dir = Some(Stat { leased, ..root().root });
        Reply::Remove(Rremove { dir })
    };
    let mut world = numbered();
    let first = world.execute(A, Tag(1), put(1)).key;
    assert!(world.receive(A, Tag(2), put(2)).is_empty());
    let outputs = world.handle(ServerInput::Answered(first, leased(true)));
    assert_eq!(outputs, [ServerOutput::Reply { connection: A, tag: Tag(1), reply: leased(true) }]);
    let second = executed(&world.handle(ServerInput::Finished(first))).unwrap();
    assert!(world.join(C, 1));
    world.receive(C, NOTAG, number(1, 1));
    let again = |tag, reply| ServerOutput::Reply { connection: C, tag, reply };
    assert_eq!(world.receive(C, Tag(5), put(1)), [again(Tag(5), leased(false))]);
    // The lease was granted before the connection broke.
    assert!(world.receive(C, Tag(6), put(2)).is_empty());
    assert_eq!(world.handle(ServerInput::Answered(second.key, leased(true))), [again(Tag(6), leased(false))]);
}

#[test]
fn a_new_session_begins_with_any_number() {
    let mut world = World::attached();
    world.receive(A, NOTAG, number(1_000_000, 999_999));
    world.execute(A, Tag(1), put(1));
    world.receive(A, NOTAG, number(1_000_007, 1_000_000));
    world.receive(A, Tag(2), put(2));
    assert_eq!(world.sessions.jobs(), 2);
}

#[test]
fn a_client_without_numbers_has_none() {
    let mut world = World::attached();
    assert!(!world.execute(A, Tag(1), put(1)).is_numbered);
    let mut world = World::leasing();
    world.join_leasing(A, 1);
    assert_blamed(&world.receive(A, NOTAG, number(1, 1)), A, PeerFault::NotAgreed("Number"));
}

#[test]
fn only_changes_are_numbered() {
    let mut world = numbered();
    for (tag, request) in [stat(), ordered_stat(), commit()].into_iter().enumerate() {
        world.receive(A, Tag(u16::try_from(tag).unwrap()), request);
    }
    world.receive(A, Tag(9), put(1));
    world.join(B, 1);
    world.receive(B, NOTAG, number(1, 1));
    assert!(world.receive(B, Tag(9), put(1)).is_empty(), "the queued change");
}

#[test]
fn a_number_is_taken_although_all_tags_are_in_use() {
    let mut world = numbered();
    let job = world.execute(A, Tag(0), put(1));
    for tag in 1..REQUESTS_MAX {
        world.execute(A, Tag(u16::try_from(tag).unwrap()), stat());
    }
    assert!(world.receive(A, NOTAG, number(5, 1)).is_empty());
    world.handle(ServerInput::Answered(job.key, reply(Errno::Io)));
    world.handle(ServerInput::Finished(job.key));
    world.execute(A, Tag(0), put(5));
}

#[test]
fn numbers_out_of_range_are_the_peers_fault() {
    type Case = (u64, u64, u64);
    let cases: [Case; 3] = [(LEDGER_MAX + 1, 1, LEDGER_MAX + 1), (5, 6, 5), (1, 0, 1)];
    for (next, answered, blamed) in cases {
        let mut world = numbered();
        let outputs = world.receive(A, NOTAG, number(next, answered));
        assert_blamed(&outputs, A, PeerFault::StrayNumber(blamed));
    }
    // The same number twice on one connection.
    let mut world = numbered();
    world.execute(A, Tag(1), put(1));
    world.receive(A, NOTAG, number(1, 1));
    assert_blamed(&world.receive(A, Tag(2), put(1)), A, PeerFault::StrayNumber(1));
    // A number that was skipped.
    let mut world = numbered();
    world.receive(A, NOTAG, number(5, 1));
    world.execute(A, Tag(1), put(1));
    world.receive(A, NOTAG, number(3, 1));
    assert_blamed(&world.receive(A, Tag(2), put(1)), A, PeerFault::StrayNumber(3));
}
