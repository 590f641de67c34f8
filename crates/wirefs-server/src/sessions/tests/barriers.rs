//! What comes behind a barrier waits until it is over, and fails with it.

use super::world::*;
use crate::sessions::{Input, Job, JobKey, Output};
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

fn is_refused(outputs: &[Output], tag: Tag) -> bool {
    outputs.iter().any(|output| matches!(output, Output::Reply { tag: told, reply, .. } if *told == tag && *reply == error(Errno::Io)))
}

/// A connection with numbers, on which a barrier is being carried out.
fn with_barrier() -> (World, Job) {
    let mut world = World::attached();
    world.receive(A, NOTAG, number(1, 1));
    let job = world.execute(A, Tag(1), barrier());
    (world, job)
}

/// The barrier fails: what its end lets begin.
fn fail(world: &mut World, job: JobKey) -> Vec<Output> {
    let mut outputs = world.handle(Input::Answered(job, error(Errno::Io)));
    outputs.extend(world.handle(Input::Finished(job)));
    outputs
}

#[test]
fn barriers_are_agreed_on_together_with_the_ledger() {
    for (asked, agreed) in
        [(FEATURE_BARRIERS, 0), (FEATURE_BARRIERS | FEATURE_LEDGER, FEATURE_BARRIERS | FEATURE_LEDGER)]
    {
        let mut world = World::new();
        let version = Tversion { features: asked, ..version_body(1, 1 << 20) };
        let outputs = world.receive(A, NOTAG, Request::Version(version));
        assert!(matches!(outputs.as_slice(), [Output::Reply { reply: Reply::Version(answer), .. }]
                if answer.features == agreed));
    }
}

// S-22
#[test]
fn a_barrier_keeps_its_turn_until_it_is_over_though_its_connection_is_gone() {
    let (mut world, job) = with_barrier();
    assert!(world.receive(A, Tag(2), put(1)).is_empty());
    assert!(world.handle(Input::TurnPassed(job.key)).is_empty(), "nothing else begins");
    assert!(executed(&world.handle(Input::Disconnected(A))).is_none());
    world.handle(Input::Answered(job.key, Reply::Remove(Rremove { dir: None })));
    assert!(executed(&world.handle(Input::Finished(job.key))).is_some());
}

// S-22
#[test]
fn contents_and_commits_behind_a_barrier_that_failed_fail_and_names_do_not() {
    let (mut world, job) = with_barrier();
    let behind = [put(1), commit(), barrier(), put(2)];
    for (tag, request) in (2..).zip(behind) {
        assert!(world.receive(A, Tag(tag), request).is_empty());
    }
    let outputs = fail(&mut world, job.key);
    assert!((2..6).all(|tag| is_refused(&outputs, Tag(tag))), "{outputs:?}");
    assert_eq!(world.sessions.jobs(), 0);
    let lock = world.execute(A, Tag(7), lock());
    world.handle(Input::Finished(lock.key));
    // Until the client has heard of it: of the second barrier too, whose number is 3.
    world.receive(A, NOTAG, number(5, 3));
    assert!(is_refused(&world.receive(A, Tag(8), put(3)), Tag(8)));
    world.receive(A, NOTAG, number(6, 6));
    world.execute(A, Tag(9), put(4));
}

// S-22
#[test]
fn what_was_sent_before_the_client_heard_that_a_barrier_failed_fails_whenever_its_turn_comes() {
    let (mut world, job) = with_barrier();
    let slow = world.receive(A, Tag(2), ordered_stat());
    assert!(slow.is_empty());
    world.receive(A, Tag(3), put(1));
    let outputs = fail(&mut world, job.key);
    let reading = executed(&outputs).unwrap();
    world.receive(A, NOTAG, number(3, 2));
    world.receive(A, Tag(4), put(2));
    let outputs = world.handle(Input::Finished(reading.key));
    assert!(is_refused(&outputs, Tag(3)), "{outputs:?}");
    assert_eq!(executed(&outputs).map(|job| job.tag), Some(Tag(4)));
}

// S-22
#[test]
fn a_barrier_that_is_told_again_to_have_failed_rules_what_comes_behind_it_again() {
    let (mut world, job) = with_barrier();
    fail(&mut world, job.key);
    world.handle(Input::Disconnected(A));
    assert!(world.join(B, 1));
    world.receive(B, NOTAG, number(1, 1));
    assert!(is_refused(&world.receive(B, Tag(1), barrier()), Tag(1)));
    assert!(is_refused(&world.receive(B, Tag(2), put(1)), Tag(2)));
}
