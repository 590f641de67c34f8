//! One test per rule of the sessions, and properties over random interleavings.

mod barriers;
mod data;
mod exclusive;
mod flushes;
mod interleavings;
mod leases;
mod ledger;
mod lifetime;
mod order;
mod owners;
mod saved_ledger;
mod shares;
mod world;

use crate::blame::{CloseReason, PeerFault};
use crate::limits::{CONNECTIONS_MAX, MSIZE_MIN, SESSIONS_MAX};
use crate::sessions::{ConnectionKey, ServerInput, ServerOutput};
use wirefs_op::limits::REQUESTS_MAX;
use wirefs_op::message::version::SessionId;
use wirefs_op::{Errno, NOTAG, Reply, Request, Tag};
use world::*;

#[test]
fn smaller_message_size_is_negotiated() {
    let mut world = World::new();
    let outputs = world.receive(A, NOTAG, version(1, 150_000));
    let [ServerOutput::Reply { tag: NOTAG, reply: Reply::Version(answer), .. }] = outputs.as_slice() else {
        panic!("{outputs:?}");
    };
    assert_eq!((answer.msize, answer.resumed, answer.boot), (150_000, false, BOOT));
    assert_eq!(answer.version.as_bytes(), b"op2");
}

#[test]
fn unknown_version_is_refused_and_another_may_follow() {
    let mut world = World::new();
    let mut other = version_body(1, 1 << 20);
    other.version = wirefs_op::wire::Text::new(b"op9");
    let outputs = world.receive(A, NOTAG, Request::Version(other));
    assert!(matches!(outputs.as_slice(), [ServerOutput::Reply { reply: Reply::Version(answer), .. }]
            if answer.version.as_bytes() == b"unknown"));
    assert_eq!(world.sessions.sessions(), 0);
    let outputs = world.receive(A, NOTAG, version(1, 1 << 20));
    assert!(matches!(outputs.as_slice(), [ServerOutput::Reply { reply: Reply::Version(_), .. }]));
}

#[test]
fn message_size_below_the_minimum_is_the_peers_fault() {
    let mut world = World::new();
    let msize = u32::try_from(MSIZE_MIN).unwrap() - 1;
    let outputs = world.receive(A, NOTAG, version(1, msize));
    assert_blamed(&outputs, A, PeerFault::MsizeTooSmall { msize });
}

#[test]
fn first_message_other_than_version_is_the_peers_fault() {
    let mut world = World::new();
    assert_blamed(&world.receive(A, Tag(1), attach(b"")), A, PeerFault::NotVersion);
}

#[test]
fn second_version_is_the_peers_fault() {
    let mut world = World::attached();
    assert_blamed(&world.receive(A, NOTAG, version(1, 1 << 20)), A, PeerFault::SecondVersion);
}

#[test]
fn request_before_attach_is_the_peers_fault() {
    let mut world = World::new();
    world.receive(A, NOTAG, version(1, 1 << 20));
    assert_blamed(&world.receive(A, Tag(1), stat()), A, PeerFault::NotAttached);
}

#[test]
fn second_attach_is_the_peers_fault() {
    let mut world = World::attached();
    assert_blamed(&world.receive(A, Tag(1), attach(b"")), A, PeerFault::SecondAttach);
}

#[test]
fn refused_attach_may_be_tried_again() {
    let mut world = World::new();
    world.receive(A, NOTAG, version(1, 1 << 20));
    let outputs = world.receive(A, Tag(1), attach(b"gone"));
    let [ServerOutput::Attach { session, before: None, .. }] = outputs.as_slice() else {
        panic!("{outputs:?}");
    };
    let refused = ServerInput::Attached { connection: A, session: *session, result: Err(Errno::NotFound) };
    let outputs = world.handle(refused);
    assert!(
        matches!(outputs.as_slice(), [ServerOutput::Reply { tag: Tag(1), reply: Reply::Error(error), .. }]
            if error.errno == Errno::NotFound)
    );
    assert!(matches!(world.receive(A, Tag(1), attach(b"")).as_slice(), [ServerOutput::Attach { .. }]));
}

#[test]
fn tag_in_use_is_the_peers_fault() {
    let mut world = World::attached();
    world.receive(A, Tag(1), stat());
    let outputs = world.receive(A, Tag(1), stat());
    assert_blamed(&outputs, A, PeerFault::TagInUse(Tag(1)));
}

#[test]
fn tag_is_free_after_the_last_reply() {
    let mut world = World::attached();
    let job = world.execute(A, Tag(1), stat());
    world.handle(ServerInput::Replied(job.key));
    let again = world.execute(A, Tag(1), stat());
    assert_ne!(job.key, again.key);
    assert!(world.handle(ServerInput::Finished(job.key)).is_empty());
}

#[test]
fn request_without_a_tag_and_version_with_one_are_the_peers_fault() {
    let mut world = World::attached();
    assert_blamed(&world.receive(A, NOTAG, stat()), A, PeerFault::StrayTag(NOTAG));
    let mut world = World::new();
    assert_blamed(&world.receive(A, Tag(4), version(1, 1 << 20)), A, PeerFault::StrayTag(Tag(4)));
}

#[test]
fn requests_beyond_the_limit_are_the_peers_fault() {
    let mut world = World::attached();
    for tag in 0..REQUESTS_MAX {
        world.execute(A, Tag(u16::try_from(tag).unwrap()), stat());
    }
    let outputs = world.receive(A, Tag(u16::try_from(REQUESTS_MAX).unwrap()), stat());
    assert_blamed(&outputs, A, PeerFault::TooManyRequests);
}

#[test]
fn message_over_the_agreed_size_is_the_peers_fault() {
    let mut world = World::new();
    world.receive(A, NOTAG, version(1, u32::try_from(MSIZE_MIN).unwrap()));
    let outputs = world.handle(ServerInput::Received(A, vec![0; MSIZE_MIN].into()));
    assert!(matches!(closed(&outputs, A), Some(CloseReason::Fault(PeerFault::Oversized { .. }))));
}

#[test]
fn fault_of_one_peer_leaves_the_others_alone() {
    let mut world = World::attached();
    world.join(B, 2);
    let job = world.execute(B, Tag(9), stat());
    world.handle(ServerInput::Received(A, vec![1, 2, 3].into()));
    assert_eq!(world.sessions.connections(), 1);
    world.handle(ServerInput::Replied(job.key));
    assert_eq!(world.execute(B, Tag(9), stat()).connection, Some(B));
}

#[test]
fn ping_is_answered_at_once_even_behind_a_running_change() {
    let mut world = World::attached();
    world.execute(A, Tag(1), put(1));
    let outputs = world.receive(A, Tag(2), ping());
    assert!(matches!(outputs.as_slice(), [ServerOutput::Reply { tag: Tag(2), reply: Reply::Ping(_), .. }]));
}

#[test]
fn unordered_requests_beyond_their_memory_fail_without_a_fault() {
    let mut world = World::attached();
    let path = vec![b"a".repeat(255); 100].join(&b'/');
    let mut refused = 0;
    for tag in 0..400 {
        let outputs = world.receive(A, Tag(tag), stat_at(&path));
        match outputs.as_slice() {
            [ServerOutput::Execute(_)] => {}
            [ServerOutput::Reply { reply: Reply::Error(error), .. }] => {
                assert_eq!(error.errno, Errno::NoMemory);
                refused += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(refused > 0);
    assert_eq!(world.sessions.connections(), 2);
}

#[test]
fn connections_and_sessions_are_bounded() {
    let mut world = World::new();
    let count = u64::try_from(CONNECTIONS_MAX).unwrap();
    for key in 100..100 + count {
        let outputs = world.handle(ServerInput::Connected(ConnectionKey(key)));
        let refused = key >= 100 + count - world.before_us;
        assert_eq!(!outputs.is_empty(), refused, "connection {key}");
    }
    let mut world = World::new();
    for number in 0..u64::try_from(SESSIONS_MAX).unwrap() {
        let key = ConnectionKey(1000 + number);
        let mut id = [0; 16];
        id[..8].copy_from_slice(&number.to_le_bytes());
        world.join_as(key, SessionId(id));
        world.handle(ServerInput::Disconnected(key));
    }
    let outputs = world.receive(A, NOTAG, version(250, 1 << 20));
    assert_eq!(closed(&outputs, A), Some(CloseReason::SessionsFull));
}
