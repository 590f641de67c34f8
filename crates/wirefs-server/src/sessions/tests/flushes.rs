//! Rflush is sent once no reply to the flushed request can come any more.

use super::world::*;
use crate::sessions::{ServerInput, ServerOutput};
use wirefs_op::{Reply, Tag};

fn is_rflush(outputs: &[ServerOutput], flushed: Tag) -> bool {
    matches!(outputs, [ServerOutput::Reply { connection: A, tag, reply: Reply::Flush(_) }] if *tag == flushed)
}

#[test]
fn flush_of_a_tag_that_is_not_in_use_is_answered_at_once() {
    let mut world = World::attached();
    assert!(is_rflush(&world.receive(A, Tag(1), flush(Tag(9))), Tag(1)));
    assert!(is_rflush(&world.receive(A, Tag(1), flush(Tag(1))), Tag(1)));
}

#[test]
fn flushed_lock_is_canceled_and_the_flush_answered_after_its_end() {
    let mut world = World::attached();
    let lock = world.execute(A, Tag(1), lock());
    assert_eq!(world.receive(A, Tag(2), flush(Tag(1))), [ServerOutput::Stop(lock.key)]);
    assert!(is_rflush(&world.handle(ServerInput::Finished(lock.key)), Tag(2)));
    world.execute(A, Tag(1), stat());
    world.execute(A, Tag(2), stat());
}

#[test]
fn flush_is_answered_after_a_last_reply_that_crossed_it() {
    let mut world = World::attached();
    let get = world.execute(A, Tag(1), stat());
    world.receive(A, Tag(2), flush(Tag(1)));
    assert!(is_rflush(&world.handle(ServerInput::Replied(get.key)), Tag(2)));
    assert!(world.handle(ServerInput::Finished(get.key)).is_empty());
}

#[test]
fn flush_waits_for_a_reply_that_is_being_queued() {
    let mut world = World::attached();
    let get = world.execute(A, Tag(1), stat());
    assert!(world.handle(ServerInput::Answering(get.key)).is_empty());
    assert_eq!(world.receive(A, Tag(2), flush(Tag(1))), [ServerOutput::Stop(get.key)]);
    assert!(is_rflush(&world.handle(ServerInput::Replied(get.key)), Tag(2)));
}

#[test]
fn tag_of_a_reply_that_is_being_queued_can_be_used_again() {
    let mut world = World::attached();
    let first = world.execute(A, Tag(1), stat());
    world.handle(ServerInput::Answering(first.key));
    let second = world.execute(A, Tag(1), stat());
    assert_eq!(world.receive(A, Tag(2), flush(Tag(1))), [ServerOutput::Stop(second.key)]);
    assert!(world.handle(ServerInput::Replied(first.key)).is_empty());
    assert!(world.handle(ServerInput::Finished(first.key)).is_empty());
    assert!(is_rflush(&world.handle(ServerInput::Finished(second.key)), Tag(2)));
}

#[test]
fn flushed_change_is_executed() {
    let mut world = World::attached();
    let first = world.execute(A, Tag(1), put(0));
    world.receive(A, Tag(2), put(1));
    assert!(world.receive(A, Tag(3), flush(Tag(2))).is_empty());
    assert!(world.receive(A, Tag(4), flush(Tag(1))).is_empty());
    let outputs = world.handle(ServerInput::Finished(first.key));
    let second = executed(&outputs).unwrap();
    assert!(is_rflush(&outputs[..1], Tag(4)));
    assert!(is_rflush(&world.handle(ServerInput::Replied(second.key)), Tag(3)));
}

#[test]
fn flushed_commit_in_the_queue_is_dropped() {
    let mut world = World::attached();
    let change = world.execute(A, Tag(1), put(0));
    world.receive(A, Tag(2), commit());
    world.receive(A, Tag(3), put(1));
    assert!(is_rflush(&world.receive(A, Tag(4), flush(Tag(2))), Tag(4)));
    assert_eq!(executed(&world.handle(ServerInput::Finished(change.key))).unwrap().tag, Tag(3));
}

#[test]
fn flush_of_a_flush_waits_for_the_same_end() {
    let mut world = World::attached();
    let lock = world.execute(A, Tag(1), lock());
    world.receive(A, Tag(2), flush(Tag(1)));
    world.receive(A, Tag(3), flush(Tag(2)));
    let outputs = world.handle(ServerInput::Finished(lock.key));
    assert!(is_rflush(&outputs[..1], Tag(2)) && is_rflush(&outputs[1..], Tag(3)), "{outputs:?}");
}
