//! A session belongs to the key that began it.

use super::world::*;
use crate::blame::CloseReason;
use crate::saved_ledger::{LedgerRecord, SavedLedger};
use crate::sessions::{ConnectionKey, ServerInput, ServerOutput, Sessions};
use wirefs_op::message::version::{FEATURE_LEDGER, SessionId, Tversion};
use wirefs_op::{Errno, NOTAG, Reply, Request};

const C: ConnectionKey = ConnectionKey(3);
const OWNER: [u8; 32] = [7; 32];
const STRANGER: [u8; 32] = [8; 32];

fn connect(world: &mut World, connection: ConnectionKey, key: Option<[u8; 32]>) {
    world.handle(ServerInput::Connected(connection));
    if let Some(key) = key {
        world.handle(ServerInput::Identified(connection, key));
    }
}

fn is_refused(outputs: &[ServerOutput], connection: ConnectionKey) -> bool {
    let refusal = |output: &ServerOutput| matches!(output, ServerOutput::Reply { tag: NOTAG, reply: Reply::Error(error), .. } if error.errno == Errno::NotPermitted);
    outputs.iter().any(refusal) && closed(outputs, connection) == Some(CloseReason::NotOwner)
}

// S-182
#[test]
fn live_session_is_not_resumed_by_another_key_and_its_owner_notices_nothing() {
    let mut world = World::new();
    world.handle(ServerInput::Identified(A, OWNER));
    world.join(A, 1);
    for key in [Some(STRANGER), None] {
        connect(&mut world, C, key);
        let outputs = world.receive(C, NOTAG, version(1, 1 << 20));
        assert!(is_refused(&outputs, C), "{outputs:?}");
        assert_eq!(closed(&outputs, A), None, "the owner keeps its connection");
    }
    world.handle(ServerInput::Disconnected(A));
    connect(&mut world, C, Some(STRANGER));
    assert!(is_refused(&world.receive(C, NOTAG, version(1, 1 << 20)), C), "a session without a connection");
    world.handle(ServerInput::Connected(A));
    world.handle(ServerInput::Identified(A, OWNER));
    world.join(A, 1);
    assert_eq!(world.sessions.sessions(), 1);
}

/// A new process with this saved ledger of session 1: the outputs for a client with this key.
fn restore(saved: SavedLedger, key: Option<[u8; 32]>) -> Vec<ServerOutput> {
    let mut world = World::with(Sessions::new(BOOT).saving_ledgers());
    connect(&mut world, C, key);
    let hello = Tversion { features: FEATURE_LEDGER, ..version_body(1, 1 << 20) };
    let outputs = world.receive(C, NOTAG, Request::Version(hello));
    assert!(matches!(outputs.as_slice(), [ServerOutput::LoadLedger { .. }]), "{outputs:?}");
    let (session, saved) = (SessionId([1; 16]), Some(Box::new(saved)));
    world.handle(ServerInput::LedgerLoaded { connection: C, session, saved })
}

// S-182
#[test]
fn saved_ledger_belongs_to_the_key_that_began_its_session() {
    let session = SessionId([1; 16]);
    let begun = restore(SavedLedger::default(), Some(OWNER));
    let owner = ServerOutput::AppendLedger(session, LedgerRecord::Owner(OWNER));
    assert!(begun.contains(&owner), "{begun:?}");
    let of = |owner| SavedLedger { owner, next: 9, ..SavedLedger::default() };
    for (owner, key) in [(Some(OWNER), Some(STRANGER)), (Some(OWNER), None), (None, Some(STRANGER))] {
        let outputs = restore(of(owner), key);
        assert!(is_refused(&outputs, C), "{owner:?} {key:?}: {outputs:?}");
        // The file stays for its owner.
        assert!(outputs.contains(&ServerOutput::LedgerClosed(session)));
    }
    for key in [Some(OWNER), None] {
        let outputs = restore(of(key), key);
        let answer = outputs.iter().find_map(|output| match output {
            ServerOutput::Reply { reply: Reply::Version(answer), .. } => Some(answer.number),
            _ => None,
        });
        assert_eq!(answer, Some(9), "{outputs:?}");
    }
}
