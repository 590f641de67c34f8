//! Data connections: admission, allowed requests, end.

use super::*;
use crate::limits::{CONNECTIONS_MAX, DATA_CONNECTIONS_MAX, RECOVERY_PERIOD};
use crate::sessions::Job;
use crate::tree::{Parked, Touched};
use std::time::Duration;
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::message::target::{Fd, Target};
use wirefs_op::message::version::{FEATURE_DATA, FEATURE_JOIN, FEATURE_LEASES, Tversion};

const C: ConnectionKey = ConnectionKey(3);
const KEY: [u8; 32] = [7; 32];

/// Session 1 on connection A, attached with data connections and leases.
fn first(identity: Option<[u8; 32]>) -> World {
    let mut world = World::leasing();
    if let Some(identity) = identity {
        world.handle(ServerInput::Identified(A, identity));
    }
    let hello = Tversion { features: FEATURE_DATA | FEATURE_LEASES, ..version_body(1, 1 << 20) };
    let outputs = world.receive(A, NOTAG, Request::Version(hello));
    assert!(matches!(outputs.as_slice(), [ServerOutput::Reply { reply: Reply::Version(answer), .. }]
            if answer.features == FEATURE_DATA | FEATURE_LEASES));
    let outputs = world.receive(A, Tag(0), attach(b""));
    let [ServerOutput::Attach { session, .. }] = outputs.as_slice() else { panic!("{outputs:?}") };
    world.handle(ServerInput::Attached { connection: A, session: *session, result: Ok(root()) });
    world
}

fn joins(
    world: &mut World,
    connection: ConnectionKey,
    id: u8,
    identity: Option<[u8; 32]>,
) -> Vec<ServerOutput> {
    if connection != B {
        world.handle(ServerInput::Connected(connection));
    }
    if let Some(identity) = identity {
        world.handle(ServerInput::Identified(connection, identity));
    }
    let hello = Tversion { features: FEATURE_JOIN, ..version_body(id, 1 << 20) };
    world.receive(connection, NOTAG, Request::Version(hello))
}

fn is_in(outputs: &[ServerOutput]) -> bool {
    matches!(outputs, [ServerOutput::Reply { tag: NOTAG, reply: Reply::Version(answer), .. }] if answer.features == FEATURE_JOIN)
}

fn assert_refused(outputs: &[ServerOutput], connection: ConnectionKey, errno: Errno) {
    assert!(
        matches!(outputs, [ServerOutput::Reply { tag: NOTAG, reply: Reply::Error(error), .. }, ServerOutput::Close { .. }]
            if error.errno == errno),
        "{outputs:?}"
    );
    assert_eq!(closed(outputs, connection), Some(CloseReason::NotJoined));
}

fn bulk(mode: GetMode, fd: Fd) -> Request {
    let mut target = Target::at(wirefs_op::TreePath::root());
    target.fd = fd;
    Request::Get(Tget { target, mode: mode.and(GetMode::DATA), nmsgs: 0, offset: 0, count: 1 << 20 })
}

fn read() -> Request {
    bulk(GetMode::MORE, Fd(3))
}

fn is_rlimited_sent(world: &mut World, connection: ConnectionKey) -> bool {
    match world.handle(ServerInput::Limited(connection)).as_slice() {
        [] => false,
        [ServerOutput::Reply { connection: A, tag: NOTAG, reply: Reply::Limited(_) }] => true,
        other => panic!("{other:?}"),
    }
}

#[test]
fn data_connection_reads_for_its_session() {
    let mut world = first(None);
    assert!(is_in(&joins(&mut world, B, 1, None)));
    let over_first = world.execute(A, Tag(1), read());
    let over_other: Job = world.execute(B, Tag(1), read());
    assert_eq!((over_first.connection, over_other.connection), (Some(A), Some(B)));
    assert_eq!(over_first.session, over_other.session);
    assert_eq!(world.sessions.sessions(), 1);
}

#[test]
fn rlimited_is_sent_while_more_data_connections_are_allowed() {
    let mut world = first(None);
    assert!(is_rlimited_sent(&mut world, A));
    for key in 10..10 + DATA_CONNECTIONS_MAX as u64 {
        assert!(is_rlimited_sent(&mut world, A));
        assert!(is_in(&joins(&mut world, ConnectionKey(key), 1, None)));
        assert_eq!(is_rlimited_sent(&mut world, ConnectionKey(key)), key < 9 + DATA_CONNECTIONS_MAX as u64);
    }
    assert!(!is_rlimited_sent(&mut world, A));
    assert!(!is_rlimited_sent(&mut world, B), "not negotiated yet");
}

#[test]
fn rlimited_is_not_sent_before_the_attach() {
    let mut world = World::leasing();
    let hello = Tversion { features: FEATURE_DATA | FEATURE_LEASES, ..version_body(1, 1 << 20) };
    world.receive(A, NOTAG, Request::Version(hello));
    assert!(!is_rlimited_sent(&mut world, A));
}

#[test]
fn data_connections_must_be_negotiated() {
    let mut world = World::attached();
    assert!(!is_rlimited_sent(&mut world, A));
    assert_refused(&joins(&mut world, B, 1, None), B, Errno::Stale);
    assert!(world.receive(A, Tag(2), ping()).len() == 1, "the main connection goes on");
}

/// S-84
#[test]
fn session_is_joined_only_with_its_id_and_key() {
    let mut world = first(Some(KEY));
    assert_refused(&joins(&mut world, B, 2, Some(KEY)), B, Errno::Stale);
    assert_refused(&joins(&mut world, C, 1, Some([8; 32])), C, Errno::Stale);
    assert_refused(&joins(&mut world, ConnectionKey(4), 1, None), ConnectionKey(4), Errno::Stale);
    assert!(is_in(&joins(&mut world, ConnectionKey(5), 1, Some(KEY))));
    let mut world = first(None);
    assert_refused(&joins(&mut world, B, 1, Some(KEY)), B, Errno::Stale);
}

#[test]
fn disconnected_session_cannot_be_joined() {
    let mut world = first(None);
    world.receive(A, Tag(1), ping());
    world.handle(ServerInput::Disconnected(A));
    assert_refused(&joins(&mut world, B, 1, None), B, Errno::Stale);
    assert!(world.join(C, 1), "the session is kept");
}

#[test]
fn data_connections_of_a_session_are_bounded() {
    let mut world = first(None);
    let keys: Vec<_> = (10..11 + DATA_CONNECTIONS_MAX as u64).map(ConnectionKey).collect();
    let (last, keys) = keys.split_last().unwrap();
    for key in keys {
        assert!(is_in(&joins(&mut world, *key, 1, None)));
    }
    assert_refused(&joins(&mut world, *last, 1, None), *last, Errno::Busy);
    world.handle(ServerInput::Disconnected(keys[0]));
    assert!(is_in(&joins(&mut world, ConnectionKey(99), 1, None)));
}

#[test]
fn data_connections_leave_room_for_other_clients() {
    let mut world = first(None);
    let here = world.sessions.connections();
    for key in 0..(CONNECTIONS_MAX / 2 - here) as u64 {
        world.handle(ServerInput::Connected(ConnectionKey(100 + key)));
    }
    assert_refused(&joins(&mut world, C, 1, None), C, Errno::Busy);
}

#[test]
fn anything_but_a_read_over_a_data_connection_is_the_peers_fault() {
    for (request, name) in [
        (put(0), "Put"),
        (stat(), "Get"),
        (attach(b""), "Attach"),
        (commit(), "Commit"),
        (bulk(GetMode::NONE, Fd(3)), "Get"),
        (bulk(GetMode::MORE, wirefs_op::message::target::NOFD), "Get"),
        (bulk(GetMode::MORE.and(GetMode::ORDERED), Fd(3)), "Get"),
    ] {
        let mut world = first(None);
        assert!(is_in(&joins(&mut world, B, 1, None)));
        assert_blamed(&world.receive(B, Tag(1), request), B, PeerFault::NotData(name));
        assert!(world.execute(A, Tag(1), read()).connection == Some(A), "the session goes on");
    }
}

#[test]
fn data_connections_end_with_the_main_connection() {
    let mut world = first(None);
    assert!(is_in(&joins(&mut world, B, 1, None)));
    let job = world.execute(B, Tag(1), read());
    let outputs = world.handle(ServerInput::Disconnected(A));
    assert_eq!(closed(&outputs, B), Some(CloseReason::Replaced));
    assert!(outputs.contains(&ServerOutput::Stop(job.key)));

    let mut world = first(None);
    assert!(is_in(&joins(&mut world, B, 1, None)));
    world.handle(ServerInput::Connected(C));
    let outputs = world.receive(C, NOTAG, version(1, 1 << 20));
    assert_eq!(
        (closed(&outputs, A), closed(&outputs, B)),
        (Some(CloseReason::Replaced), Some(CloseReason::Replaced))
    );
}

#[test]
fn lost_data_connection_cancels_only_its_own_reads() {
    let mut world = first(None);
    assert!(is_in(&joins(&mut world, B, 1, None)));
    let over_first = world.execute(A, Tag(1), read());
    let over_other = world.execute(B, Tag(1), read());
    let outputs = world.handle(ServerInput::Disconnected(B));
    assert_eq!(outputs, [ServerOutput::Stop(over_other.key)]);
    world.handle(ServerInput::Finished(over_other.key));
    world.handle(ServerInput::Replied(over_first.key));
    assert_eq!((world.sessions.sessions(), world.sessions.connections()), (1, 1));
}

/// S-82
#[test]
fn messages_on_a_data_connection_renew_no_leases() {
    let mut world = first(None);
    world.join_leasing(C, 2);
    assert!(is_in(&joins(&mut world, B, 1, None)));
    assert!(world.learn(A, id(7)));
    let job = world.execute(C, Tag(1), put(0));
    assert_eq!(world.touch(job.key, &[Touched::object(id(7))]).0, Err(Parked));
    world.handle(ServerInput::Parked(job.key, job.request));
    let mut executed_again = None;
    for _ in 0..=RECOVERY_PERIOD.as_secs() {
        world.now = world.now + Duration::from_secs(1);
        for output in world.handle(ServerInput::Tick) {
            assert!(closed(std::slice::from_ref(&output), A).is_none(), "the connection stays open");
            executed_again = executed(std::slice::from_ref(&output)).or(executed_again);
        }
        world.receive(C, Tag(800), ping());
        world.receive(B, Tag(800), ping());
    }
    assert!(executed_again.is_some(), "the change waits no longer than for a silent client");
}
