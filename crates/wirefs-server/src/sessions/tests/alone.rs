//! Being alone: who is told, who waits for whom, and for how long.

mod names;
mod neighbours;
mod property;

use super::world::*;
use crate::blame::{Parting, PeerFault};
use crate::limits::{GRACE, RECOVERY};
use crate::sessions::{ConnectionKey, Input, Output, Sessions, Terms};
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

/// To whom these outputs say whether they are alone, in which message.
fn told(outputs: &[Output]) -> Vec<(ConnectionKey, u64, bool)> {
    let alone = |output: &Output| match output {
        Output::Reply { connection, tag: NOTAG, reply: Reply::Alone(Ralone { serial, alone }) } => {
            Some((*connection, *serial, *alone))
        }
        _ => None,
    };
    outputs.iter().filter_map(alone).collect()
}

/// The attaches that the tree is asked for.
fn asked(outputs: &[Output]) -> Vec<(ConnectionKey, SessionKey)> {
    let asked = |output: &Output| match output {
        Output::Attach { connection, session, .. } => Some((*connection, *session)),
        _ => None,
    };
    outputs.iter().filter_map(asked).collect()
}

/// Agrees on these features and sends Tattach. What follows from that.
fn come(world: &mut World, connection: ConnectionKey, id: u8, features: u64) -> Vec<Output> {
    if connection != A && connection != B {
        world.handle(Input::Connected(connection));
    }
    let mut hello = version_body(id, 1 << 20);
    hello.features = features;
    let agreed = world.receive(connection, NOTAG, Request::Version(hello));
    assert!(told(&agreed).is_empty());
    world.receive(connection, Tag(0), attach(b""))
}

/// The tree says yes to these attaches. What follows from that.
fn let_in(world: &mut World, asked: &[(ConnectionKey, SessionKey)]) -> Vec<Output> {
    let attached = |(connection, session): &(ConnectionKey, SessionKey)| {
        world.handle(Input::Attached { connection: *connection, session: *session, result: Ok(root()) })
    };
    asked.iter().flat_map(attached).collect()
}

/// Comes and is let in at once.
fn enter(world: &mut World, connection: ConnectionKey, id: u8, features: u64) -> Vec<Output> {
    let outputs = come(world, connection, id, features);
    let asked = asked(&outputs);
    assert_eq!(asked.len(), 1, "{outputs:?}");
    let_in(world, &asked)
}

/// A has session 1 and was told that it is alone.
fn lone() -> World {
    let mut world = World::leasing();
    let outputs = enter(&mut world, A, 1, ALL);
    assert!(matches!(told(&outputs).as_slice(), [(A, _, true)]), "{outputs:?}");
    world
}

/// A was alone, B with session 2 waits. The serial that A has to answer.
fn coming() -> (World, u64) {
    let mut world = lone();
    let outputs = come(&mut world, B, 2, FEATURE_LEASES);
    assert!(asked(&outputs).is_empty());
    let [(A, serial, false)] = told(&outputs)[..] else { panic!("{outputs:?}") };
    (world, serial)
}

fn later(world: &mut World, span: Duration) -> Vec<Output> {
    world.now = world.now + span;
    world.handle(Input::Tick)
}

/// Lets so many seconds pass while this connection pings. With the second in which each output came.
fn pinging(world: &mut World, connection: ConnectionKey, seconds: u64) -> Vec<(u64, Output)> {
    let mut outputs = Vec::new();
    for second in 1..=seconds {
        let mut now = later(world, Duration::from_millis(998));
        now.extend(world.receive(connection, Tag(800), ping()));
        outputs.extend(now.into_iter().map(|output| (second, output)));
    }
    outputs
}

#[test]
fn the_only_session_is_told_behind_its_attach() {
    let mut world = World::leasing();
    let outputs = enter(&mut world, A, 1, ALL);
    assert!(matches!(&outputs[0], Output::Reply { reply: Reply::Attach(_), .. }), "{outputs:?}");
    assert!(matches!(told(&outputs[1..]).as_slice(), [(A, 1.., true)]), "{outputs:?}");
    assert!(told(&later(&mut world, Duration::from_secs(100))).is_empty(), "it is told once");
}

#[test]
fn who_did_not_ask_for_all_that_it_takes_is_never_told() {
    for features in
        [0, FEATURE_LEASES, FEATURE_LEDGER, FEATURE_LEASES | FEATURE_LEDGER, ALL & !FEATURE_LEASES]
    {
        let mut world = World::leasing();
        assert!(told(&enter(&mut world, A, 1, features)).is_empty(), "features {features}");
        assert!(told(&later(&mut world, Duration::from_secs(5))).is_empty());
        let outputs = come(&mut world, B, 2, ALL);
        assert_eq!(asked(&outputs).len(), 1, "and nobody waits for it");
    }
    let mut world = World::new();
    assert!(told(&enter(&mut world, A, 1, ALL)).is_empty(), "it leases nothing");
}

#[test]
fn the_feature_is_agreed_on_only_with_numbers() {
    for (asked, agreed) in [(ALL, ALL), (FEATURE_ALONE | FEATURE_LEASES, FEATURE_LEASES), (FEATURE_ALONE, 0)]
    {
        let mut world = World::leasing();
        let mut hello = version_body(1, 1 << 20);
        hello.features = asked;
        let outputs = world.receive(A, NOTAG, Request::Version(hello));
        assert!(matches!(outputs.as_slice(), [Output::Reply { reply: Reply::Version(answer), .. }]
            if answer.features == agreed));
    }
}

#[test]
fn who_comes_waits_until_the_lone_session_has_given_way() {
    let (mut world, serial) = coming();
    assert!(world.sessions.is_behind(B), "what it sends is left on the wire");
    assert!(!world.sessions.is_behind(A));
    assert!(asked(&world.receive(A, NOTAG, recalled(serial + 1))).is_empty(), "that names nothing");
    let outputs = world.receive(A, NOTAG, recalled(serial));
    assert!(matches!(asked(&outputs).as_slice(), [(B, _)]), "{outputs:?}");
    assert!(told(&outputs).is_empty());
    assert!(told(&let_in(&mut world, &asked(&outputs))).is_empty());
    assert!(!world.sessions.is_behind(B));
    world.execute(B, Tag(1), stat());
}

#[test]
fn all_who_come_wait_and_the_lone_session_is_told_once() {
    let (mut world, serial) = coming();
    let outputs = come(&mut world, C, 3, 0);
    assert!(asked(&outputs).is_empty() && told(&outputs).is_empty());
    let outputs = world.receive(A, NOTAG, recalled(serial));
    assert!(matches!(asked(&outputs).as_slice(), [(B, _), (C, _)]), "{outputs:?}");
    assert!(told(&let_in(&mut world, &asked(&outputs))).is_empty());
}

#[test]
fn who_remains_is_told_again_once_the_leases_of_the_others_have_run_out() {
    let mut world = lone();
    let outputs = come(&mut world, B, 2, ALL);
    let [(A, serial, false)] = told(&outputs)[..] else { panic!("{outputs:?}") };
    let asked = asked(&world.receive(A, NOTAG, recalled(serial)));
    assert!(told(&let_in(&mut world, &asked)).is_empty());
    assert!(world.learn(B, id(7)));
    let outputs = world.handle(Input::Disconnected(B));
    assert!(told(&outputs).is_empty(), "it may believe its lease");
    let outputs = pinging(&mut world, A, RECOVERY.as_secs() + 1);
    let told: Vec<_> = outputs.iter().flat_map(|(_, output)| told(std::slice::from_ref(output))).collect();
    assert!(matches!(told.as_slice(), [(A, again, true)] if *again > serial), "{told:?}");
}

#[test]
fn who_remains_is_told_at_once_where_the_others_believe_nothing() {
    let mut world = lone();
    let outputs = come(&mut world, B, 2, FEATURE_LEASES);
    let [(A, serial, false)] = told(&outputs)[..] else { panic!("{outputs:?}") };
    let asked = asked(&world.receive(A, NOTAG, recalled(serial)));
    let_in(&mut world, &asked);
    world.learn(B, id(7));
    world.receive(B, NOTAG, recalled(RELEASE_ALL));
    let outputs = world.handle(Input::Disconnected(B));
    assert!(matches!(told(&outputs).as_slice(), [(A, _, true)]), "{outputs:?}");
}

#[test]
fn nobody_is_alone_while_something_of_another_session_runs() {
    let mut world = World::leasing();
    enter(&mut world, B, 2, 0);
    let job = world.execute(B, Tag(1), put(0));
    world.handle(Input::Disconnected(B));
    assert!(told(&enter(&mut world, A, 1, ALL)).is_empty());
    let outputs = world.handle(Input::Finished(job.key));
    assert!(matches!(told(&outputs).as_slice(), [(A, _, true)]), "{outputs:?}");
}

#[test]
fn who_is_refused_by_the_tree_leaves_the_other_alone() {
    let (mut world, serial) = coming();
    let outputs = world.receive(A, NOTAG, recalled(serial));
    let [(connection, session)] = asked(&outputs)[..] else { panic!("{outputs:?}") };
    let outputs = world.handle(Input::Attached { connection, session, result: Err(Errno::NotFound) });
    assert!(matches!(&outputs[0], Output::Reply { connection: B, reply: Reply::Error(_), .. }));
    assert!(matches!(told(&outputs).as_slice(), [(A, _, true)]), "{outputs:?}");
}

#[test]
fn who_goes_while_it_waits_is_not_let_in() {
    let (mut world, serial) = coming();
    assert!(asked(&world.handle(Input::Disconnected(B))).is_empty());
    let outputs = world.receive(A, NOTAG, recalled(serial));
    assert!(asked(&outputs).is_empty());
    assert!(matches!(told(&outputs).as_slice(), [(A, _, true)]), "nobody came after all: {outputs:?}");
    assert_eq!(world.sessions.sessions(), 1);
}

#[test]
fn silent_session_is_waited_for_until_it_believes_nothing_any_more() {
    let (mut world, _) = coming();
    assert!(asked(&later(&mut world, RECOVERY - Duration::from_millis(100))).is_empty());
    assert!(
        world.sessions.deadline().is_some_and(|deadline| deadline <= world.now + Duration::from_millis(100))
    );
    let outputs = later(&mut world, Duration::from_millis(100));
    assert!(matches!(asked(&outputs).as_slice(), [(B, _)]), "{outputs:?}");
}

#[test]
fn session_that_is_heard_and_does_not_give_way_loses_its_connection() {
    let (mut world, _) = coming();
    let outputs = pinging(&mut world, A, 40);
    let closed = outputs.iter().find(|(_, output)| matches!(output, Output::Close { connection: A, .. }));
    let let_on = outputs.iter().find(|(_, output)| matches!(output, Output::Attach { .. }));
    let (closed, let_on) = (closed.expect("closed"), let_on.expect("let on"));
    assert!(matches!(closed.1, Output::Close { why: Parting::Unresponsive, .. }));
    assert_eq!((closed.0, let_on.0), (ANSWER.as_secs() + 1, (ANSWER + RECOVERY).as_secs() + 1));
}

#[test]
fn session_that_brings_its_changes_has_time_for_it() {
    let (mut world, serial) = coming();
    for change in 0..6_u64 {
        let job = world.execute(A, Tag(1), put(change));
        let outputs = pinging(&mut world, A, 8);
        assert!(
            !outputs.iter().any(|(_, output)| matches!(output, Output::Close { .. } | Output::Attach { .. }))
        );
        world.handle(Input::Finished(job.key));
    }
    assert_eq!(asked(&world.receive(A, NOTAG, recalled(serial))).len(), 1);
}

#[test]
fn session_without_a_connection_is_waited_for_and_comes_back_to_give_way() {
    let (mut world, serial) = coming();
    assert!(asked(&world.handle(Input::Disconnected(A))).is_empty());
    assert!(asked(&later(&mut world, Duration::from_secs(5))).is_empty());
    let outputs = enter(&mut world, C, 1, ALL);
    let [(C, again, false)] = told(&outputs)[..] else { panic!("{outputs:?}") };
    assert_ne!(again, serial);
    assert!(asked(&world.receive(C, NOTAG, recalled(serial))).is_empty(), "that was the other connection's");
    assert!(matches!(asked(&world.receive(C, NOTAG, recalled(again))).as_slice(), [(B, _)]));
}

#[test]
fn session_that_stays_away_is_not_waited_for_and_comes_back_among_others() {
    let (mut world, _) = coming();
    world.handle(Input::Disconnected(A));
    let asked = asked(&later(&mut world, RECOVERY));
    assert_eq!(asked.len(), 1);
    let_in(&mut world, &asked);
    assert!(told(&enter(&mut world, C, 1, ALL)).is_empty());
}

#[test]
fn session_that_comes_back_alone_is_told_so() {
    let mut world = lone();
    for (connection, away) in [(C, 1), (ConnectionKey(4), 60)] {
        let old = if connection == C { A } else { C };
        world.handle(Input::Disconnected(old));
        assert!(told(&later(&mut world, Duration::from_secs(away))).is_empty());
        let outputs = enter(&mut world, connection, 1, ALL);
        assert!(
            matches!(told(&outputs).as_slice(), [(whose, _, true)] if *whose == connection),
            "{outputs:?}"
        );
    }
}

#[test]
fn session_whose_newer_connection_asks_for_less_is_alone_no_more() {
    let (mut world, _) = coming();
    let outputs = enter(&mut world, C, 1, FEATURE_LEASES);
    assert!(told(&outputs).is_empty());
    assert!(matches!(asked(&outputs).as_slice(), [(B, _)]), "{outputs:?}");
}

#[test]
fn who_rests_is_not_waited_for() {
    let mut world = lone();
    world.receive(A, NOTAG, recalled(RELEASE_ALL));
    world.handle(Input::Disconnected(A));
    assert_eq!(asked(&come(&mut world, B, 2, ALL)).len(), 1);
    let (mut world, _) = coming();
    assert_eq!(asked(&world.receive(A, NOTAG, recalled(RELEASE_ALL))).len(), 1);
}

#[test]
fn who_answers_that_it_is_alone_and_goes_is_not_waited_for() {
    let mut world = World::leasing();
    let [(A, serial, true)] = told(&enter(&mut world, A, 1, ALL))[..] else { panic!("it is alone") };
    assert!(world.receive(A, NOTAG, recalled(serial)).is_empty());
    world.handle(Input::Disconnected(A));
    assert_eq!(asked(&come(&mut world, B, 2, ALL)).len(), 1);
    // It may go on as well, and is waited for then.
    let mut world = World::leasing();
    let [(A, serial, true)] = told(&enter(&mut world, A, 1, ALL))[..] else { panic!("it is alone") };
    world.receive(A, NOTAG, recalled(serial));
    world.receive(A, Tag(1), ping());
    assert!(asked(&come(&mut world, B, 2, ALL)).is_empty());
}

#[test]
fn session_that_has_ended_keeps_nobody_waiting() {
    let mut world = lone();
    world.handle(Input::Disconnected(A));
    later(&mut world, GRACE);
    assert_eq!(world.sessions.sessions(), 0);
    assert_eq!(asked(&come(&mut world, B, 2, 0)).len(), 1);
}

#[test]
fn nobody_is_alone_while_leases_of_a_former_server_may_be_believed() {
    let until = Time(0) + RECOVERY;
    let terms = Terms { recovering_until: Some(until), ..Terms::new(Watch::Filesystem) };
    let mut world = World::with(Sessions::leasing(BOOT, terms));
    assert!(told(&enter(&mut world, A, 1, ALL)).is_empty());
    assert_eq!(world.sessions.deadline(), Some(until));
    world.now = until;
    let outputs = world.handle(Input::Tick);
    assert!(matches!(told(&outputs).as_slice(), [(A, _, true)]), "{outputs:?}");
}

#[test]
fn server_that_ends_waits_for_who_is_alone() {
    let mut world = lone();
    assert!(world.sessions.are_leases_out());
    let outputs = world.handle(Input::Drain);
    let [(A, serial, false)] = told(&outputs)[..] else { panic!("{outputs:?}") };
    assert!(world.sessions.is_recalling());
    world.receive(A, NOTAG, recalled(serial));
    for (_, serial, _) in recalls(&outputs) {
        world.receive(A, NOTAG, recalled(serial));
    }
    assert!(!world.sessions.is_recalling() && !world.sessions.are_leases_out());
    assert!(told(&later(&mut world, Duration::from_secs(1))).is_empty());
}

#[test]
fn server_that_ends_carries_out_what_is_on_its_way_from_who_is_alone() {
    let mut world = lone();
    let outputs = world.handle(Input::Drain);
    let [(A, serial, false)] = told(&outputs)[..] else { panic!("{outputs:?}") };
    let job = executed(&world.receive(A, Tag(1), put(0))).unwrap();
    world.handle(Input::Finished(job.key));
    world.receive(A, NOTAG, recalled(serial));
    assert_eq!(executed(&world.receive(A, Tag(2), put(1))), None, "it has said that nothing more comes");
}

#[test]
fn request_behind_an_attach_that_waits_is_the_peers_fault_if_it_is_handed_in() {
    let (mut world, _) = coming();
    assert_blamed(&world.receive(B, Tag(1), stat()), B, PeerFault::NotAttached);
    let (mut world, _) = coming();
    assert_blamed(&world.receive(B, Tag(1), attach(b"")), B, PeerFault::SecondAttach);
}
