//! A hostile peer that takes all it can get, and one that says nothing.

use super::world::*;
use crate::blame::CloseReason;
use crate::limits::{CONNECTIONS_MAX, FIRST_ATTACH_MAX, SESSIONS_MAX};
use crate::sessions::{ConnectionKey, ServerInput, ServerOutput};
use bytes::Bytes;
use std::time::Duration;
use wirefs_op::{Errno, NOTAG, Reply, Request, Tag};

const GREEDY: [u8; 32] = [7; 32];
const HONEST: [u8; 32] = [8; 32];

fn connect(world: &mut World, connection: ConnectionKey, party: ServerInput) -> Vec<ServerOutput> {
    world.handle(ServerInput::Connected(connection));
    world.handle(party)
}

/// Whether the outputs refuse the connection with an errno.
fn is_refused(outputs: &[ServerOutput], connection: ConnectionKey) -> bool {
    let refusal = |output: &ServerOutput| matches!(output, ServerOutput::Reply { tag: NOTAG, reply: Reply::Error(error), .. } if error.errno == Errno::TooManyOpen);
    outputs.iter().any(refusal) && closed(outputs, connection) == Some(CloseReason::PartyFull)
}

// S-181
#[test]
fn greedy_party_gets_half_of_the_connections_and_others_find_room() {
    let of_key = |connection| ServerInput::Identified(connection, GREEDY);
    let of_address = |connection| ServerInput::Addressed(connection, "192.0.2.1".to_owned());
    let parties: [&dyn Fn(ConnectionKey) -> ServerInput; 2] = [&of_key, &of_address];
    for party in parties {
        let mut world = World::new();
        let keys = (1000..1000 + CONNECTIONS_MAX as u64).map(ConnectionKey);
        let refused = keys.filter(|key| is_refused(&connect(&mut world, *key, party(*key)), *key)).count();
        assert_eq!(refused, CONNECTIONS_MAX / 2 + 1, "it gets one less than half, beside two others");
        for key in [ConnectionKey(5), ConnectionKey(6)] {
            assert_eq!(connect(&mut world, key, ServerInput::Identified(key, HONEST)), []);
            let outputs = world.receive(key, NOTAG, version(9, 1 << 20));
            assert!(
                outputs.iter().any(|it| matches!(it, ServerOutput::Reply { reply: Reply::Version(_), .. })),
                "{outputs:?}"
            );
        }
    }
}

// S-181
#[test]
fn greedy_key_gets_half_of_the_sessions_and_others_find_room() {
    let mut world = World::new();
    let begin = |world: &mut World, number: u64, key: [u8; 32]| {
        let connection = ConnectionKey(1000 + number);
        assert_eq!(connect(world, connection, ServerInput::Identified(connection, key)), []);
        let mut hello = version_body(0, 1 << 20);
        hello.session.0[..8].copy_from_slice(&number.to_le_bytes());
        let outputs = world.receive(connection, NOTAG, Request::Version(hello));
        if is_refused(&outputs, connection) {
            return false;
        }
        let outputs = world.receive(connection, Tag(0), attach(b""));
        let [ServerOutput::Attach { session, .. }] = outputs.as_slice() else { panic!("{outputs:?}") };
        world.handle(ServerInput::Attached { connection, session: *session, result: Ok(root()) });
        // The session stays for its timeout.
        world.handle(ServerInput::Disconnected(connection));
        true
    };
    let begun = (0..SESSIONS_MAX as u64).filter(|number| begin(&mut world, *number, GREEDY)).count();
    assert_eq!(begun, SESSIONS_MAX / 2);
    assert!(begin(&mut world, 5000, HONEST));
}

// S-180
#[test]
fn connection_that_does_not_attach_in_time_is_closed() {
    let mut world = World::attached();
    world.receive(B, NOTAG, version(2, 1 << 20));
    let fresh = ConnectionKey(3);
    world.handle(ServerInput::Connected(fresh));
    let due = world.sessions.deadline().expect("a deadline");
    assert!(due <= world.now + FIRST_ATTACH_MAX);
    world.now = world.now + (FIRST_ATTACH_MAX - Duration::from_millis(100));
    assert_eq!(world.handle(ServerInput::Tick), []);
    world.now = world.now + Duration::from_millis(200);
    let outputs = world.handle(ServerInput::Tick);
    for silent in [B, fresh] {
        assert_eq!(closed(&outputs, silent), Some(CloseReason::Silent), "{outputs:?}");
    }
    assert_eq!(closed(&outputs, A), None, "an attached connection may be idle");
    assert_eq!((world.sessions.connections(), world.sessions.sessions()), (1, 1));
}

// S-189
#[test]
fn request_that_waits_does_not_keep_its_receive_buffer_in_memory() {
    let mut world = World::attached();
    world.execute(A, Tag(1), put(0));
    let body = put_bytes(8, 40_000).encode(Tag(2)).to_body();
    let buffer = Bytes::from([&body[..], &vec![0; 1 << 20]].concat());
    let outputs = world.handle(ServerInput::Received(A, buffer.slice(..body.len())));
    assert_eq!(outputs, [], "it waits for the write slot");
    assert!(buffer.is_unique());
}
