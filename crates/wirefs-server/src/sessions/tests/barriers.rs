//! Requests after a barrier wait for its end, and fail if it fails.

use super::world::*;
use crate::sessions::{Job, JobKey, ServerInput, ServerOutput};
use wirefs_op::message::error::Rerror;
use wirefs_op::message::number::Tnumber;
use wirefs_op::message::remove::Rremove;
use wirefs_op::message::version::{FEATURE_BARRIERS, FEATURE_LEDGER, Tversion};
use wirefs_op::{Errno, NOTAG, Reply, Request, Tag};

fn number(number: u64, answered: u64) -> Request {
    Request::Number(Tnumber { number, answered })
}

fn error(errno: Errno) -> Reply {
    Reply::Error(Rerror::from(errno))
}

fn is_refused(outputs: &[ServerOutput], tag: Tag) -> bool {
    outputs.iter().any(|output| matches!(output, ServerOutput::Reply { tag: sent, reply, .. } if *sent == tag && *reply == error(Errno::Io)))
}

/// A connection with numbers and a running barrier.
fn with_barrier() -> (World, Job) {
    let mut world = World::attached();
    world.receive(A, NOTAG, number(1, 1));
    let job = world.execute(A, Tag(1), barrier());
    (world, job)
}

/// Fails the barrier. Returns the outputs of its end.
fn fail(world: &mut World, job: JobKey) -> Vec<ServerOutput> {
    let mut outputs = world.handle(ServerInput::Answered(job, error(Errno::Io)));
    outputs.extend(world.handle(ServerInput::Finished(job)));
    outputs
}

#[test]
fn barriers_are_negotiated_together_with_the_ledger() {
    for (asked, agreed) in
        [(FEATURE_BARRIERS, 0), (FEATURE_BARRIERS | FEATURE_LEDGER, FEATURE_BARRIERS | FEATURE_LEDGER)]
    {
        let mut world = World::new();
        let version = Tversion { features: asked, ..version_body(1, 1 << 20) };
        let outputs = world.receive(A, NOTAG, Request::Version(version));
        assert!(matches!(outputs.as_slice(), [ServerOutput::Reply { reply: Reply::Version(answer), .. }]
                if answer.features == agreed));
    }
}

// S-22
#[test]
fn a_barrier_keeps_the_write_slot_until_its_end_without_its_connection() {
    let (mut world, job) = with_barrier();
    assert!(world.receive(A, Tag(2), put(1)).is_empty());
    assert!(world.handle(ServerInput::SlotReleased(job.key)).is_empty(), "no other job starts");
    assert!(executed(&world.handle(ServerInput::Disconnected(A))).is_none());
    world.handle(ServerInput::Answered(job.key, Reply::Remove(Rremove { dir: None })));
    assert!(executed(&world.handle(ServerInput::Finished(job.key))).is_some());
}

// S-22
#[test]
fn writes_and_commits_after_a_failed_barrier_fail_and_locks_do_not() {
    let (mut world, job) = with_barrier();
    let behind = [put(1), commit(), barrier(), put(2)];
    for (tag, request) in (2..).zip(behind) {
        assert!(world.receive(A, Tag(tag), request).is_empty());
    }
    let outputs = fail(&mut world, job.key);
    assert!((2..6).all(|tag| is_refused(&outputs, Tag(tag))), "{outputs:?}");
    assert_eq!(world.sessions.jobs(), 0);
    let lock = world.execute(A, Tag(7), lock());
    world.handle(ServerInput::Finished(lock.key));
    // Until the client acknowledges both failures; the second barrier has number 3.
    world.receive(A, NOTAG, number(5, 3));
    assert!(is_refused(&world.receive(A, Tag(8), put(3)), Tag(8)));
    world.receive(A, NOTAG, number(6, 6));
    world.execute(A, Tag(9), put(4));
}

// S-22
#[test]
fn changes_sent_before_the_acknowledgment_of_a_failed_barrier_fail() {
    let (mut world, job) = with_barrier();
    let slow = world.receive(A, Tag(2), ordered_stat());
    assert!(slow.is_empty());
    world.receive(A, Tag(3), put(1));
    let outputs = fail(&mut world, job.key);
    let reading = executed(&outputs).unwrap();
    world.receive(A, NOTAG, number(3, 2));
    world.receive(A, Tag(4), put(2));
    let outputs = world.handle(ServerInput::Finished(reading.key));
    assert!(is_refused(&outputs, Tag(3)), "{outputs:?}");
    assert_eq!(executed(&outputs).map(|job| job.tag), Some(Tag(4)));
}

// S-22
#[test]
fn a_repeated_failed_barrier_closes_the_fence_again() {
    let (mut world, job) = with_barrier();
    fail(&mut world, job.key);
    world.handle(ServerInput::Disconnected(A));
    assert!(world.join(B, 1));
    world.receive(B, NOTAG, number(1, 1));
    assert!(is_refused(&world.receive(B, Tag(1), barrier()), Tag(1)));
    assert!(is_refused(&world.receive(B, Tag(2), put(1)), Tag(2)));
}
