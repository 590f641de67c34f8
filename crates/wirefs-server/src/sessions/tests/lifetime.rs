//! Sessions outlive their connections for a bounded time.

use super::world::*;
use crate::blame::CloseReason;
use crate::limits::SESSION_TIMEOUT;
use crate::sessions::{ConnectionKey, ServerInput, ServerOutput};
use std::time::Duration;
use wirefs_op::message::recall::END_SESSION;
use wirefs_op::{Errno, NOTAG, Reply, Tag};

const C: ConnectionKey = ConnectionKey(3);

/// Whether the request is refused as on a read-only file system, without reaching the tree.
fn is_refused(outputs: &[ServerOutput]) -> bool {
    let refusal = |reply: &Reply| matches!(reply, Reply::Error(error) if error.errno == Errno::ReadOnly);
    matches!(outputs, [ServerOutput::Reply { reply, .. }] if refusal(reply))
}

#[test]
fn restricted_peer_may_read_and_lock_but_change_nothing_also_in_a_resumed_session() {
    let mut world = World::attached();
    let change = world.execute(A, Tag(1), put(0));
    world.handle(ServerInput::Finished(change.key));
    world.handle(ServerInput::Disconnected(A));
    world.handle(ServerInput::Connected(C));
    world.handle(ServerInput::Restricted(C));
    world.receive(C, NOTAG, version(1, 1 << 20));
    let outputs = world.receive(C, Tag(0), attach(b""));
    let [ServerOutput::Attach { session, .. }] = outputs.as_slice() else { panic!("{outputs:?}") };
    let attached = ServerInput::Attached { connection: C, session: *session, result: Ok(root()) };
    let outputs = world.handle(attached);
    assert!(
        matches!(outputs.as_slice(), [ServerOutput::Reply { reply: Reply::Attach(answer), .. }] if answer.read_only)
    );
    assert!(is_refused(&world.receive(C, Tag(1), put(0))));
    world.execute(C, Tag(2), stat());
    // The refused change holds neither its tag nor the write slot.
    let locking = world.execute(C, Tag(3), lock());
    world.handle(ServerInput::Finished(locking.key));
    assert!(is_refused(&world.receive(C, Tag(1), put(0))));
}

#[test]
fn revoked_peer_loses_its_connections_and_its_session_at_once() {
    let mut world = World::attached();
    let key = world.execute(A, Tag(1), stat()).key;
    let outputs = world.handle(ServerInput::Revoked(A));
    assert_eq!(closed(&outputs, A), Some(CloseReason::Revoked));
    assert!(outputs.contains(&ServerOutput::Stop(key)));
    let outputs = world.handle(ServerInput::Finished(key));
    assert!(matches!(outputs.as_slice(), [ServerOutput::EndSession(_)]), "{outputs:?}");
    assert_eq!((world.sessions.sessions(), world.sessions.connections()), (0, 1));
    assert!(world.handle(ServerInput::Revoked(A)).is_empty(), "a connection that is gone");
}

// S-77
#[test]
fn session_is_resumed_with_the_same_key_and_attach_result() {
    let mut world = World::attached();
    let before = world.execute(A, Tag(1), stat());
    world.handle(ServerInput::Disconnected(A));
    assert!(world.sessions.deadline().is_some());
    world.handle(ServerInput::Connected(C));
    let outputs = world.receive(C, NOTAG, version(1, 1 << 20));
    assert!(
        matches!(outputs.as_slice(), [ServerOutput::Reply { reply: Reply::Version(answer), .. }] if answer.resumed)
    );
    let outputs = world.receive(C, Tag(0), attach(b""));
    world.handle(ServerInput::Disconnected(B));
    assert_eq!(world.sessions.deadline(), None);
    let [ServerOutput::Attach { session, before: Some(result), .. }] = outputs.as_slice() else {
        panic!("{outputs:?}");
    };
    assert_eq!((*session, result), (before.session, &root()));
}

#[test]
fn session_with_a_new_connection_loses_the_older() {
    let mut world = World::attached();
    let stream = world.execute(A, Tag(1), stat());
    let change = world.execute(A, Tag(2), put(0));
    let outputs = world.receive(B, NOTAG, version(1, 1 << 20));
    assert_eq!(closed(&outputs, A), Some(CloseReason::Replaced));
    assert!(outputs.contains(&ServerOutput::Stop(stream.key)));
    assert!(!outputs.contains(&ServerOutput::Stop(change.key)));
    assert!(world.handle(ServerInput::Disconnected(A)).is_empty(), "the connection was removed");
    assert!(world.receive(A, Tag(3), stat()).is_empty());
    world.receive(B, Tag(0), attach(b""));
    assert_eq!(world.sessions.deadline(), None);
}

#[test]
fn resumed_session_keeps_its_root() {
    let mut world = World::attached();
    world.receive(B, NOTAG, version(1, 1 << 20));
    let outputs = world.receive(B, Tag(0), attach(b"elsewhere"));
    assert!(
        matches!(outputs.as_slice(), [ServerOutput::Reply { reply: Reply::Error(error), .. }] if error.errno == Errno::Invalid)
    );
}

// S-78
#[test]
fn session_without_connection_ends_after_its_timeout() {
    let mut world = World::attached();
    world.handle(ServerInput::Disconnected(B));
    let session = world.execute(A, Tag(1), stat());
    world.handle(ServerInput::Finished(session.key));
    world.handle(ServerInput::Disconnected(A));
    let until = world.sessions.deadline().unwrap();
    assert_eq!(until, world.now + SESSION_TIMEOUT);
    world.now = world.now + (SESSION_TIMEOUT - Duration::from_secs(1));
    assert!(world.handle(ServerInput::Tick).is_empty());
    world.now = until;
    assert_eq!(world.handle(ServerInput::Tick), [ServerOutput::EndSession(session.session)]);
    assert_eq!((world.sessions.sessions(), world.sessions.deadline()), (0, None));
    assert!(!world.join(C, 1), "its id opens a new session");
}

#[test]
fn session_that_never_attached_ends_with_its_connection() {
    let mut world = World::new();
    world.receive(A, NOTAG, version(1, 1 << 20));
    assert!(world.handle(ServerInput::Disconnected(A)).is_empty(), "the tree does not know the session");
    assert_eq!(world.sessions.sessions(), 0);
}

#[test]
fn received_changes_are_executed_without_their_connection() {
    let mut world = World::attached();
    let first = world.execute(A, Tag(1), put(0));
    world.receive(A, Tag(2), put(1));
    world.receive(A, Tag(3), commit());
    world.receive(A, Tag(4), put(2));
    assert!(world.handle(ServerInput::Disconnected(A)).is_empty());
    let second = executed(&world.handle(ServerInput::Finished(first.key))).unwrap();
    assert_eq!((second.tag, second.connection), (Tag(2), None));
    let third = executed(&world.handle(ServerInput::Finished(second.key))).unwrap();
    assert_eq!(third.tag, Tag(4), "the commit was canceled");
    assert!(world.handle(ServerInput::Finished(third.key)).is_empty());
}

#[test]
fn changes_after_a_resume_wait_for_those_before_it() {
    let mut world = World::attached();
    let old = world.execute(A, Tag(1), put(0));
    world.handle(ServerInput::Disconnected(A));
    world.join(B, 1);
    assert!(world.receive(B, Tag(1), put(1)).is_empty());
    let new = executed(&world.handle(ServerInput::Finished(old.key))).unwrap();
    assert_eq!(new.connection, Some(B));
}

#[test]
fn tree_learns_of_the_end_after_the_last_job() {
    let mut world = World::attached();
    let change = world.execute(A, Tag(1), put(0));
    world.receive(A, Tag(2), put(1));
    let read = world.execute(A, Tag(3), stat());
    let outputs = world.handle(ServerInput::Stop);
    assert!(outputs.contains(&ServerOutput::Stop(read.key)));
    assert_eq!(closed(&outputs, A), Some(CloseReason::Stopping));
    assert!(world.handle(ServerInput::Finished(read.key)).is_empty());
    let last = executed(&world.handle(ServerInput::Finished(change.key))).unwrap();
    let end = world.handle(ServerInput::Finished(last.key));
    assert_eq!(end, [ServerOutput::EndSession(change.session)]);
    assert_eq!((world.sessions.sessions(), world.sessions.jobs(), world.sessions.connections()), (0, 0, 0));
}

#[test]
fn stop_during_an_attach_ends_the_session_after_it() {
    let mut world = World::new();
    world.receive(A, NOTAG, version(1, 1 << 20));
    let outputs = world.receive(A, Tag(0), attach(b""));
    let [ServerOutput::Attach { session, .. }] = outputs.as_slice() else {
        panic!("{outputs:?}");
    };
    assert!(!world.handle(ServerInput::Stop).contains(&ServerOutput::EndSession(*session)));
    let outputs =
        world.handle(ServerInput::Attached { connection: A, session: *session, result: Ok(root()) });
    assert_eq!(outputs, [ServerOutput::EndSession(*session)]);
}

#[test]
fn session_does_not_begin_again_while_its_jobs_are_still_running() {
    let mut world = World::attached();
    let job = world.execute(A, Tag(1), put(0));
    world.handle(ServerInput::Disconnected(A));
    world.now = world.now + SESSION_TIMEOUT;
    world.handle(ServerInput::Tick);
    world.handle(ServerInput::Connected(B));
    let outputs = world.receive(B, NOTAG, version(1, 1 << 20));
    assert_eq!(closed(&outputs, B), Some(CloseReason::SessionBusy));
    world.handle(ServerInput::Finished(job.key));
    world.handle(ServerInput::Connected(B));
    assert!(!world.join(B, 1), "a new session");
}

// S-79
#[test]
fn a_session_ended_by_its_client_ends_before_the_connection_and_no_change_waits_for_it() {
    let mut world = World::leasing();
    world.join_leasing(A, 1);
    world.join_leasing(B, 2);
    let outputs = world.receive(A, NOTAG, recalled(END_SESSION));
    let ended = outputs.iter().position(|output| matches!(output, ServerOutput::EndSession(_)));
    let closed = outputs
        .iter()
        .position(|output| *output == ServerOutput::Close { connection: A, why: CloseReason::Ended });
    assert!(ended.is_some() && ended < closed, "{outputs:?}");
    assert_eq!(world.sessions.sessions(), 1);
    let (resumed, ..) = world.join_leasing(C, 1);
    assert!(!resumed);
    assert!(world.receive(A, NOTAG, recalled(END_SESSION)).is_empty(), "the connection is gone");
}

// S-79
#[test]
fn connection_of_an_ended_session_closes_after_its_last_job() {
    let mut world = World::leasing();
    world.join_leasing(A, 1);
    let job = world.execute(A, Tag(1), stat());
    assert!(
        !world
            .receive(A, NOTAG, recalled(END_SESSION))
            .iter()
            .any(|output| matches!(output, ServerOutput::Close { .. }))
    );
    let outputs = world.handle(ServerInput::Finished(job.key));
    let close = ServerOutput::Close { connection: A, why: CloseReason::Ended };
    assert!(matches!(&outputs[..], [ServerOutput::EndSession(_), last] if *last == close), "{outputs:?}");
}
