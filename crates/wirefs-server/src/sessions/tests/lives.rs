//! Sessions outlive their connections, for a while.

use super::world::*;
use crate::blame::Parting;
use crate::limits::GRACE;
use crate::sessions::{ConnectionKey, Input, Output};
use std::time::Duration;
use wirefs_op::message::recall::END_SESSION;
use wirefs_op::{Errno, NOTAG, Reply, Tag};

const C: ConnectionKey = ConnectionKey(3);

// S-77
#[test]
fn session_is_resumed_with_the_same_key_and_what_the_tree_said() {
    let mut world = World::attached();
    let before = world.execute(A, Tag(1), stat());
    world.handle(Input::Disconnected(A));
    assert!(world.sessions.deadline().is_some());
    world.handle(Input::Connected(C));
    let outputs = world.receive(C, NOTAG, version(1, 1 << 20));
    assert!(
        matches!(outputs.as_slice(), [Output::Reply { reply: Reply::Version(answer), .. }] if answer.resumed)
    );
    assert_eq!(world.sessions.deadline(), None);
    let outputs = world.receive(C, Tag(0), attach(b""));
    let [Output::Attach { session, before: Some(said), .. }] = outputs.as_slice() else {
        panic!("{outputs:?}");
    };
    assert_eq!((*session, said), (before.session, &root()));
}

#[test]
fn session_with_a_new_connection_loses_the_older() {
    let mut world = World::attached();
    let stream = world.execute(A, Tag(1), stat());
    let change = world.execute(A, Tag(2), put(0));
    let outputs = world.receive(B, NOTAG, version(1, 1 << 20));
    assert_eq!(closed(&outputs, A), Some(Parting::Replaced));
    assert!(outputs.contains(&Output::Stop(stream.key)));
    assert!(!outputs.contains(&Output::Stop(change.key)));
    assert!(world.handle(Input::Disconnected(A)).is_empty(), "it is forgotten already");
    assert!(world.receive(A, Tag(3), stat()).is_empty());
    assert_eq!(world.sessions.deadline(), None);
}

#[test]
fn resumed_session_keeps_its_root() {
    let mut world = World::attached();
    world.receive(B, NOTAG, version(1, 1 << 20));
    let outputs = world.receive(B, Tag(0), attach(b"elsewhere"));
    assert!(
        matches!(outputs.as_slice(), [Output::Reply { reply: Reply::Error(error), .. }] if error.errno == Errno::Invalid)
    );
}

// S-78
#[test]
fn session_without_connection_ends_after_its_grace() {
    let mut world = World::attached();
    let session = world.execute(A, Tag(1), stat());
    world.handle(Input::Finished(session.key));
    world.handle(Input::Disconnected(A));
    let until = world.sessions.deadline().unwrap();
    assert_eq!(until, world.now + GRACE);
    world.now = world.now + (GRACE - Duration::from_secs(1));
    assert!(world.handle(Input::Tick).is_empty());
    world.now = until;
    assert_eq!(world.handle(Input::Tick), [Output::EndSession(session.session)]);
    assert_eq!((world.sessions.sessions(), world.sessions.deadline()), (0, None));
    assert!(!world.join(C, 1), "its id opens a new session");
}

#[test]
fn session_that_never_attached_ends_with_its_connection() {
    let mut world = World::new();
    world.receive(A, NOTAG, version(1, 1 << 20));
    assert!(world.handle(Input::Disconnected(A)).is_empty(), "the tree never heard of it");
    assert_eq!(world.sessions.sessions(), 0);
}

#[test]
fn received_changes_are_carried_out_without_their_connection() {
    let mut world = World::attached();
    let first = world.execute(A, Tag(1), put(0));
    world.receive(A, Tag(2), put(1));
    world.receive(A, Tag(3), commit());
    world.receive(A, Tag(4), put(2));
    assert!(world.handle(Input::Disconnected(A)).is_empty());
    let second = executed(&world.handle(Input::Finished(first.key))).unwrap();
    assert_eq!((second.tag, second.connection), (Tag(2), None));
    let third = executed(&world.handle(Input::Finished(second.key))).unwrap();
    assert_eq!(third.tag, Tag(4), "nobody waits for the commit");
    assert!(world.handle(Input::Finished(third.key)).is_empty());
}

#[test]
fn changes_after_a_resume_wait_for_those_before_it() {
    let mut world = World::attached();
    let old = world.execute(A, Tag(1), put(0));
    world.handle(Input::Disconnected(A));
    world.join(B, 1);
    assert!(world.receive(B, Tag(1), put(1)).is_empty());
    let new = executed(&world.handle(Input::Finished(old.key))).unwrap();
    assert_eq!(new.connection, Some(B));
}

#[test]
fn tree_hears_of_the_end_only_when_nothing_runs_any_more() {
    let mut world = World::attached();
    let change = world.execute(A, Tag(1), put(0));
    world.receive(A, Tag(2), put(1));
    let read = world.execute(A, Tag(3), stat());
    let outputs = world.handle(Input::Stop);
    assert!(outputs.contains(&Output::Stop(read.key)));
    assert_eq!(closed(&outputs, A), Some(Parting::Stopping));
    assert!(world.handle(Input::Finished(read.key)).is_empty());
    let last = executed(&world.handle(Input::Finished(change.key))).unwrap();
    let end = world.handle(Input::Finished(last.key));
    assert_eq!(end, [Output::EndSession(change.session)]);
    assert_eq!((world.sessions.sessions(), world.sessions.jobs(), world.sessions.connections()), (0, 0, 0));
}

#[test]
fn stop_during_an_attach_ends_the_session_after_it() {
    let mut world = World::new();
    world.receive(A, NOTAG, version(1, 1 << 20));
    let outputs = world.receive(A, Tag(0), attach(b""));
    let [Output::Attach { session, .. }] = outputs.as_slice() else {
        panic!("{outputs:?}");
    };
    assert!(!world.handle(Input::Stop).contains(&Output::EndSession(*session)));
    let outputs = world.handle(Input::Attached { connection: A, session: *session, result: Ok(root()) });
    assert_eq!(outputs, [Output::EndSession(*session)]);
}

#[test]
fn session_does_not_begin_again_while_its_former_life_still_works() {
    let mut world = World::attached();
    let job = world.execute(A, Tag(1), put(0));
    world.handle(Input::Disconnected(A));
    world.now = world.now + GRACE;
    world.handle(Input::Tick);
    world.handle(Input::Connected(B));
    let outputs = world.receive(B, NOTAG, version(1, 1 << 20));
    assert_eq!(closed(&outputs, B), Some(Parting::SessionBusy));
    world.handle(Input::Finished(job.key));
    world.handle(Input::Connected(B));
    assert!(!world.join(B, 1), "it begins anew");
}

// S-79
#[test]
fn a_session_that_its_client_ends_is_over_before_the_connection_is_and_nobody_waits_for_it() {
    let mut world = World::leasing();
    world.join_leasing(A, 1);
    world.join_leasing(B, 2);
    let outputs = world.receive(A, NOTAG, recalled(END_SESSION));
    let ended = outputs.iter().position(|output| matches!(output, Output::EndSession(_)));
    let closed =
        outputs.iter().position(|output| *output == Output::Close { connection: A, why: Parting::Ended });
    assert!(ended.is_some() && ended < closed, "{outputs:?}");
    assert_eq!(world.sessions.sessions(), 1);
    let (resumed, ..) = world.join_leasing(C, 1);
    assert!(!resumed);
    assert!(world.receive(A, NOTAG, recalled(END_SESSION)).is_empty(), "the connection is gone");
}

// S-79
#[test]
fn who_ends_a_session_hears_so_when_what_still_runs_of_it_is_over() {
    let mut world = World::leasing();
    world.join_leasing(A, 1);
    let job = world.execute(A, Tag(1), stat());
    assert!(
        !world
            .receive(A, NOTAG, recalled(END_SESSION))
            .iter()
            .any(|output| matches!(output, Output::Close { .. }))
    );
    let outputs = world.handle(Input::Finished(job.key));
    let close = Output::Close { connection: A, why: Parting::Ended };
    assert!(matches!(&outputs[..], [Output::EndSession(_), last] if *last == close), "{outputs:?}");
}
