//! Exclusive sessions: when they begin, and how long other sessions wait for their end.

mod colocated;
mod names;
mod property;

use super::world::*;
use crate::blame::{CloseReason, PeerFault};
use crate::limits::{RECOVERY_PERIOD, SESSION_TIMEOUT};
use crate::sessions::{ConnectionKey, LeaseTerms, ServerInput, ServerOutput, Sessions};
use crate::tree::SessionKey;
use std::time::Duration;
use wirefs_lease::limits::ANSWER;
use wirefs_op::message::alone::Ralone;
use wirefs_op::message::attach::Watch;
use wirefs_op::message::recall::RELEASE_ALL;
use wirefs_op::message::version::{FEATURE_ALONE, FEATURE_LEASES, FEATURE_LEDGER};
use wirefs_op::{Errno, NOTAG, Reply, Request, Tag, Time};

const C: ConnectionKey = ConnectionKey(3);
const ALL: u64 = FEATURE_ALONE | FEATURE_LEASES | FEATURE_LEDGER;

/// The Ralone messages in these outputs: connection, serial, whether exclusive.
fn notices(outputs: &[ServerOutput]) -> Vec<(ConnectionKey, u64, bool)> {
    let notice = |output: &ServerOutput| match output {
        ServerOutput::Reply { connection, tag: NOTAG, reply: Reply::Alone(Ralone { serial, alone }) } => {
            Some((*connection, *serial, *alone))
        }
        _ => None,
    };
    outputs.iter().filter_map(notice).collect()
}

/// The attaches in these outputs.
fn attaches(outputs: &[ServerOutput]) -> Vec<(ConnectionKey, SessionKey)> {
    let attach = |output: &ServerOutput| match output {
        ServerOutput::Attach { connection, session, .. } => Some((*connection, *session)),
        _ => None,
    };
    outputs.iter().filter_map(attach).collect()
}

/// Negotiates these features and sends Tattach. Returns the outputs.
fn start_attach(world: &mut World, connection: ConnectionKey, id: u8, features: u64) -> Vec<ServerOutput> {
    if connection != A && connection != B {
        world.handle(ServerInput::Connected(connection));
    }
    let mut hello = version_body(id, 1 << 20);
    hello.features = features;
    let agreed = world.receive(connection, NOTAG, Request::Version(hello));
    assert!(notices(&agreed).is_empty());
    world.receive(connection, Tag(0), attach(b""))
}

/// The tree accepts these attaches. Returns the outputs.
fn accept(world: &mut World, attaches: &[(ConnectionKey, SessionKey)]) -> Vec<ServerOutput> {
    let attached = |(connection, session): &(ConnectionKey, SessionKey)| {
        world.handle(ServerInput::Attached { connection: *connection, session: *session, result: Ok(root()) })
    };
    attaches.iter().flat_map(attached).collect()
}

/// Attaches without having to wait.
fn attach_at_once(world: &mut World, connection: ConnectionKey, id: u8, features: u64) -> Vec<ServerOutput> {
    let outputs = start_attach(world, connection, id, features);
    let attaches = attaches(&outputs);
    assert_eq!(attaches.len(), 1, "{outputs:?}");
    accept(world, &attaches)
}

/// Connection A has the exclusive session 1.
fn exclusive_session() -> World {
    let mut world = World::leasing();
    let outputs = attach_at_once(&mut world, A, 1, ALL);
    assert!(matches!(notices(&outputs).as_slice(), [(A, _, true)]), "{outputs:?}");
    world
}

/// Session 1 of A is exclusive, and session 2 of B waits for it. Returns the serial of the recall.
fn held_attach() -> (World, u64) {
    let mut world = exclusive_session();
    let outputs = start_attach(&mut world, B, 2, FEATURE_LEASES);
    assert!(attaches(&outputs).is_empty());
    let [(A, serial, false)] = notices(&outputs)[..] else { panic!("{outputs:?}") };
    (world, serial)
}

fn later(world: &mut World, span: Duration) -> Vec<ServerOutput> {
    world.now = world.now + span;
    world.handle(ServerInput::Tick)
}

/// Lets so many seconds pass while this connection pings. Returns the outputs with their seconds.
fn pinging(world: &mut World, connection: ConnectionKey, seconds: u64) -> Vec<(u64, ServerOutput)> {
    let mut outputs = Vec::new();
    for second in 1..=seconds {
        let mut now = later(world, Duration::from_millis(998));
        now.extend(world.receive(connection, Tag(800), ping()));
        outputs.extend(now.into_iter().map(|output| (second, output)));
    }
    outputs
}

#[test]
fn the_only_session_becomes_exclusive_after_its_attach() {
    let mut world = World::leasing();
    let outputs = attach_at_once(&mut world, A, 1, ALL);
    assert!(matches!(&outputs[0], ServerOutput::Reply { reply: Reply::Attach(_), .. }), "{outputs:?}");
    assert!(matches!(notices(&outputs[1..]).as_slice(), [(A, 1.., true)]), "{outputs:?}");
    assert!(notices(&later(&mut world, Duration::from_secs(100))).is_empty(), "the notice is sent once");
}

#[test]
fn session_without_the_needed_features_never_becomes_exclusive() {
    for features in
        [0, FEATURE_LEASES, FEATURE_LEDGER, FEATURE_LEASES | FEATURE_LEDGER, ALL & !FEATURE_LEASES]
    {
        let mut world = World::leasing();
        assert!(notices(&attach_at_once(&mut world, A, 1, features)).is_empty(), "features {features}");
        assert!(notices(&later(&mut world, Duration::from_secs(5))).is_empty());
        let outputs = start_attach(&mut world, B, 2, ALL);
        assert_eq!(attaches(&outputs).len(), 1, "no attach waits for it");
    }
    let mut world = World::new();
    assert!(notices(&attach_at_once(&mut world, A, 1, ALL)).is_empty(), "the server grants no leases");
}

#[test]
fn the_feature_is_negotiated_only_with_numbers() {
    for (attaches, agreed) in
        [(ALL, ALL), (FEATURE_ALONE | FEATURE_LEASES, FEATURE_LEASES), (FEATURE_ALONE, 0)]
    {
        let mut world = World::leasing();
        let mut hello = version_body(1, 1 << 20);
        hello.features = attaches;
        let outputs = world.receive(A, NOTAG, Request::Version(hello));
        assert!(matches!(outputs.as_slice(), [ServerOutput::Reply { reply: Reply::Version(answer), .. }]
            if answer.features == agreed));
    }
}

#[test]
fn attach_waits_for_the_exclusive_session() {
    let (mut world, serial) = held_attach();
    assert!(world.sessions.is_backlogged(B), "the driver stops reading it");
    assert!(!world.sessions.is_backlogged(A));
    assert!(attaches(&world.receive(A, NOTAG, recalled(serial + 1))).is_empty(), "unknown serial");
    let outputs = world.receive(A, NOTAG, recalled(serial));
    assert!(matches!(attaches(&outputs).as_slice(), [(B, _)]), "{outputs:?}");
    assert!(notices(&outputs).is_empty());
    assert!(notices(&accept(&mut world, &attaches(&outputs))).is_empty());
    assert!(!world.sessions.is_backlogged(B));
    world.execute(B, Tag(1), stat());
}

#[test]
fn all_attaches_wait_for_one_recall() {
    let (mut world, serial) = held_attach();
    let outputs = start_attach(&mut world, C, 3, 0);
    assert!(attaches(&outputs).is_empty() && notices(&outputs).is_empty());
    let outputs = world.receive(A, NOTAG, recalled(serial));
    assert!(matches!(attaches(&outputs).as_slice(), [(B, _), (C, _)]), "{outputs:?}");
    assert!(notices(&accept(&mut world, &attaches(&outputs))).is_empty());
}

#[test]
fn remaining_session_becomes_exclusive_once_other_leases_have_expired() {
    let mut world = exclusive_session();
    let outputs = start_attach(&mut world, B, 2, ALL);
    let [(A, serial, false)] = notices(&outputs)[..] else { panic!("{outputs:?}") };
    let attaches = attaches(&world.receive(A, NOTAG, recalled(serial)));
    assert!(notices(&accept(&mut world, &attaches)).is_empty());
    assert!(world.learn(B, id(7)));
    let outputs = world.handle(ServerInput::Disconnected(B));
    assert!(notices(&outputs).is_empty(), "its lease is still valid");
    let outputs = pinging(&mut world, A, RECOVERY_PERIOD.as_secs() + 1);
    let notices: Vec<_> =
        outputs.iter().flat_map(|(_, output)| notices(std::slice::from_ref(output))).collect();
    assert!(matches!(notices.as_slice(), [(A, again, true)] if *again > serial), "{notices:?}");
}

#[test]
fn remaining_session_becomes_exclusive_at_once_without_other_leases() {
    let mut world = exclusive_session();
    let outputs = start_attach(&mut world, B, 2, FEATURE_LEASES);
    let [(A, serial, false)] = notices(&outputs)[..] else { panic!("{outputs:?}") };
    let attaches = attaches(&world.receive(A, NOTAG, recalled(serial)));
    accept(&mut world, &attaches);
    world.learn(B, id(7));
    world.receive(B, NOTAG, recalled(RELEASE_ALL));
    let outputs = world.handle(ServerInput::Disconnected(B));
    assert!(matches!(notices(&outputs).as_slice(), [(A, _, true)]), "{outputs:?}");
}

#[test]
fn no_session_is_exclusive_while_a_job_of_another_runs() {
    let mut world = World::leasing();
    attach_at_once(&mut world, B, 2, 0);
    let job = world.execute(B, Tag(1), put(0));
    world.handle(ServerInput::Disconnected(B));
    assert!(notices(&attach_at_once(&mut world, A, 1, ALL)).is_empty());
    let outputs = world.handle(ServerInput::Finished(job.key));
    assert!(matches!(notices(&outputs).as_slice(), [(A, _, true)]), "{outputs:?}");
}

#[test]
fn refused_attach_leaves_the_other_session_exclusive() {
    let (mut world, serial) = held_attach();
    let outputs = world.receive(A, NOTAG, recalled(serial));
    let [(connection, session)] = attaches(&outputs)[..] else { panic!("{outputs:?}") };
    let outputs = world.handle(ServerInput::Attached { connection, session, result: Err(Errno::NotFound) });
    assert!(matches!(&outputs[0], ServerOutput::Reply { connection: B, reply: Reply::Error(_), .. }));
    assert!(matches!(notices(&outputs).as_slice(), [(A, _, true)]), "{outputs:?}");
}

#[test]
fn held_attach_ends_with_its_connection() {
    let (mut world, serial) = held_attach();
    assert!(attaches(&world.handle(ServerInput::Disconnected(B))).is_empty());
    let outputs = world.receive(A, NOTAG, recalled(serial));
    assert!(attaches(&outputs).is_empty());
    assert!(matches!(notices(&outputs).as_slice(), [(A, _, true)]), "no other session is left: {outputs:?}");
    assert_eq!(world.sessions.sessions(), 1);
}

#[test]
fn attach_waits_for_a_silent_session_until_its_leases_expire() {
    let (mut world, _) = held_attach();
    assert!(attaches(&later(&mut world, RECOVERY_PERIOD - Duration::from_millis(100))).is_empty());
    assert!(
        world.sessions.deadline().is_some_and(|deadline| deadline <= world.now + Duration::from_millis(100))
    );
    let outputs = later(&mut world, Duration::from_millis(100));
    assert!(matches!(attaches(&outputs).as_slice(), [(B, _)]), "{outputs:?}");
}

#[test]
fn session_that_does_not_answer_the_recall_loses_its_connection() {
    let (mut world, _) = held_attach();
    let outputs = pinging(&mut world, A, 40);
    let closed =
        outputs.iter().find(|(_, output)| matches!(output, ServerOutput::Close { connection: A, .. }));
    let attach_held = outputs.iter().find(|(_, output)| matches!(output, ServerOutput::Attach { .. }));
    let (closed, attach_held) = (closed.expect("closed"), attach_held.expect("attached"));
    assert!(matches!(closed.1, ServerOutput::Close { why: CloseReason::Unresponsive, .. }));
    assert_eq!((closed.0, attach_held.0), (ANSWER.as_secs() + 1, (ANSWER + RECOVERY_PERIOD).as_secs() + 1));
}

#[test]
fn session_that_sends_its_changes_gets_more_time() {
    let (mut world, serial) = held_attach();
    for change in 0..6_u64 {
        let job = world.execute(A, Tag(1), put(change));
        let outputs = pinging(&mut world, A, 8);
        assert!(
            !outputs.iter().any(|(_, output)| matches!(
                output,
                ServerOutput::Close { .. } | ServerOutput::Attach { .. }
            ))
        );
        world.handle(ServerInput::Finished(job.key));
    }
    assert_eq!(attaches(&world.receive(A, NOTAG, recalled(serial))).len(), 1);
}

#[test]
fn attach_waits_for_a_disconnected_session_that_returns_and_answers() {
    let (mut world, serial) = held_attach();
    assert!(attaches(&world.handle(ServerInput::Disconnected(A))).is_empty());
    assert!(attaches(&later(&mut world, Duration::from_secs(5))).is_empty());
    let outputs = attach_at_once(&mut world, C, 1, ALL);
    let [(C, again, false)] = notices(&outputs)[..] else { panic!("{outputs:?}") };
    assert_ne!(again, serial);
    assert!(
        attaches(&world.receive(C, NOTAG, recalled(serial))).is_empty(),
        "serial of the other connection"
    );
    assert!(matches!(attaches(&world.receive(C, NOTAG, recalled(again))).as_slice(), [(B, _)]));
}

#[test]
fn attach_proceeds_without_a_session_that_stays_away() {
    let (mut world, _) = held_attach();
    world.handle(ServerInput::Disconnected(A));
    let attaches = attaches(&later(&mut world, RECOVERY_PERIOD));
    assert_eq!(attaches.len(), 1);
    accept(&mut world, &attaches);
    assert!(notices(&attach_at_once(&mut world, C, 1, ALL)).is_empty());
}

#[test]
fn returning_session_becomes_exclusive_again() {
    let mut world = exclusive_session();
    for (connection, away) in [(C, 1), (ConnectionKey(4), 60)] {
        let old = if connection == C { A } else { C };
        world.handle(ServerInput::Disconnected(old));
        assert!(notices(&later(&mut world, Duration::from_secs(away))).is_empty());
        let outputs = attach_at_once(&mut world, connection, 1, ALL);
        assert!(
            matches!(notices(&outputs).as_slice(), [(whose, _, true)] if *whose == connection),
            "{outputs:?}"
        );
    }
}

#[test]
fn newer_connection_without_the_feature_ends_the_exclusive_session() {
    let (mut world, _) = held_attach();
    let outputs = attach_at_once(&mut world, C, 1, FEATURE_LEASES);
    assert!(notices(&outputs).is_empty());
    assert!(matches!(attaches(&outputs).as_slice(), [(B, _)]), "{outputs:?}");
}

#[test]
fn attach_does_not_wait_for_a_session_that_released_its_leases() {
    let mut world = exclusive_session();
    world.receive(A, NOTAG, recalled(RELEASE_ALL));
    world.handle(ServerInput::Disconnected(A));
    assert_eq!(attaches(&start_attach(&mut world, B, 2, ALL)).len(), 1);
    let (mut world, _) = held_attach();
    assert_eq!(attaches(&world.receive(A, NOTAG, recalled(RELEASE_ALL))).len(), 1);
}

#[test]
fn attach_does_not_wait_for_a_session_that_declined_and_left() {
    let mut world = World::leasing();
    let [(A, serial, true)] = notices(&attach_at_once(&mut world, A, 1, ALL))[..] else {
        panic!("not exclusive")
    };
    assert!(world.receive(A, NOTAG, recalled(serial)).is_empty());
    world.handle(ServerInput::Disconnected(A));
    assert_eq!(attaches(&start_attach(&mut world, B, 2, ALL)).len(), 1);
    // A later request renews the session, so it is waited for.
    let mut world = World::leasing();
    let [(A, serial, true)] = notices(&attach_at_once(&mut world, A, 1, ALL))[..] else {
        panic!("not exclusive")
    };
    world.receive(A, NOTAG, recalled(serial));
    world.receive(A, Tag(1), ping());
    assert!(attaches(&start_attach(&mut world, B, 2, ALL)).is_empty());
}

#[test]
fn attach_does_not_wait_for_an_ended_session() {
    let mut world = exclusive_session();
    world.handle(ServerInput::Disconnected(A));
    later(&mut world, SESSION_TIMEOUT);
    assert_eq!(world.sessions.sessions(), 0);
    // The silent connection B was closed meanwhile.
    world.handle(ServerInput::Connected(B));
    assert_eq!(attaches(&start_attach(&mut world, B, 2, 0)).len(), 1);
}

#[test]
fn no_session_is_exclusive_during_recovery() {
    let until = Time(0) + RECOVERY_PERIOD;
    let terms = LeaseTerms { recovering_until: Some(until), ..LeaseTerms::new(Watch::Filesystem) };
    let mut world = World::with(Sessions::leasing(BOOT, terms));
    world.handle(ServerInput::Disconnected(B));
    assert!(notices(&attach_at_once(&mut world, A, 1, ALL)).is_empty());
    assert_eq!(world.sessions.deadline(), Some(until));
    world.now = until;
    let outputs = world.handle(ServerInput::Tick);
    assert!(matches!(notices(&outputs).as_slice(), [(A, _, true)]), "{outputs:?}");
}

#[test]
fn draining_server_waits_for_the_exclusive_session() {
    let mut world = exclusive_session();
    assert!(world.sessions.has_leases_out());
    let outputs = world.handle(ServerInput::Drain);
    let [(A, serial, false)] = notices(&outputs)[..] else { panic!("{outputs:?}") };
    assert!(world.sessions.is_recalling());
    world.receive(A, NOTAG, recalled(serial));
    for (_, serial, _) in recalls(&outputs) {
        world.receive(A, NOTAG, recalled(serial));
    }
    assert!(!world.sessions.is_recalling() && !world.sessions.has_leases_out());
    assert!(notices(&later(&mut world, Duration::from_secs(1))).is_empty());
}

#[test]
fn draining_server_executes_unconfirmed_changes() {
    let mut world = exclusive_session();
    let outputs = world.handle(ServerInput::Drain);
    let [(A, serial, false)] = notices(&outputs)[..] else { panic!("{outputs:?}") };
    let job = executed(&world.receive(A, Tag(1), put(0))).unwrap();
    world.handle(ServerInput::Finished(job.key));
    world.receive(A, NOTAG, recalled(serial));
    assert_eq!(executed(&world.receive(A, Tag(2), put(1))), None, "no change may follow the answer");
}

#[test]
fn request_after_a_held_attach_is_the_peers_fault() {
    let (mut world, _) = held_attach();
    assert_blamed(&world.receive(B, Tag(1), stat()), B, PeerFault::NotAttached);
    let (mut world, _) = held_attach();
    assert_blamed(&world.receive(B, Tag(1), attach(b"")), B, PeerFault::SecondAttach);
}
