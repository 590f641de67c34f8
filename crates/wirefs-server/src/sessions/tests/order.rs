//! Changes of one session run one at a time; other requests run in parallel.

use super::world::*;
use crate::limits::BACKLOG_BYTES_MAX;
use crate::sessions::{ServerInput, ServerOutput};
use wirefs_op::message::find::Tfind;
use wirefs_op::message::target::Target;
use wirefs_op::{Order, Weight};
use wirefs_op::{Request, Tag, TreePath};

fn offset(request: &Request) -> u64 {
    let Request::Put(put) = request else { panic!("{request:?}") };
    put.offset
}

// S-3
#[test]
fn changes_run_one_at_a_time_in_the_order_received() {
    let mut world = World::attached();
    let mut running = world.execute(A, Tag(0), put(0));
    for number in 1..20 {
        assert!(world.receive(A, Tag(number), put(number.into())).is_empty());
    }
    for number in 1..20 {
        assert!(world.handle(ServerInput::Replied(running.key)).is_empty(), "a reply does not end the work");
        running = executed(&world.handle(ServerInput::Finished(running.key))).unwrap();
        assert_eq!(offset(&running.request), number);
    }
    assert!(world.handle(ServerInput::Finished(running.key)).is_empty());
    assert_eq!(world.sessions.jobs(), 0);
}

#[test]
fn plain_reads_overtake_changes() {
    let mut world = World::attached();
    world.execute(A, Tag(0), put(0));
    assert_eq!(world.execute(A, Tag(1), stat()).order, Order::Free);
}

// S-54
#[test]
fn a_waiting_lock_releases_the_write_slot() {
    let mut world = World::attached();
    let change = world.execute(A, Tag(0), put(0));
    assert!(world.receive(A, Tag(1), lock()).is_empty());
    assert!(world.receive(A, Tag(2), put(1)).is_empty());
    let waiting = executed(&world.handle(ServerInput::Finished(change.key))).unwrap();
    assert_eq!((waiting.tag, waiting.order, waiting.weight), (Tag(1), Order::Ordered, Weight::Blocking));
    // A later change may release the lock.
    let change = executed(&world.handle(ServerInput::SlotReleased(waiting.key))).unwrap();
    assert_eq!(change.tag, Tag(2));
    // It can still be canceled.
    let flushed = world.receive(A, Tag(3), flush(Tag(1)));
    assert!(flushed.contains(&ServerOutput::Stop(waiting.key)), "{flushed:?}");
}

#[test]
fn tfind_overtakes_changes_and_is_long() {
    let mut world = World::attached();
    world.execute(A, Tag(0), put(0));
    let target = Target::at(TreePath::root());
    let find = Tfind { target, depth: 9, entries: 100, bytes: 1000, inline: 0 };
    let job = world.execute(A, Tag(1), Request::Find(find));
    assert_eq!((job.order, job.weight), (Order::Free, Weight::Long));
}

#[test]
fn ordered_read_takes_the_write_slot() {
    let mut world = World::attached();
    let change = world.execute(A, Tag(0), put(0));
    assert!(world.receive(A, Tag(1), ordered_stat()).is_empty());
    assert!(world.receive(A, Tag(2), put(1)).is_empty());
    let read = executed(&world.handle(ServerInput::Finished(change.key))).unwrap();
    assert_eq!(read.tag, Tag(1));
    let change = executed(&world.handle(ServerInput::Finished(read.key))).unwrap();
    assert_eq!(change.tag, Tag(2));
}

// S-18
#[test]
fn commit_waits_for_earlier_changes_and_then_releases_the_slot() {
    let mut world = World::attached();
    let before = world.execute(A, Tag(0), put(0));
    assert!(world.receive(A, Tag(1), commit()).is_empty());
    assert!(world.receive(A, Tag(2), put(1)).is_empty());
    let commit = executed(&world.handle(ServerInput::Finished(before.key))).unwrap();
    assert_eq!(commit.tag, Tag(1));
    let after = executed(&world.handle(ServerInput::SlotReleased(commit.key))).unwrap();
    assert_eq!(after.tag, Tag(2));
    assert!(world.handle(ServerInput::SlotReleased(commit.key)).is_empty(), "the slot is released once");
    assert!(world.handle(ServerInput::Finished(commit.key)).is_empty(), "another job has the slot");
    assert!(world.handle(ServerInput::Finished(after.key)).is_empty());
}

#[test]
fn sessions_do_not_wait_for_each_other() {
    let mut world = World::attached();
    world.join(B, 2);
    world.execute(A, Tag(0), put(0));
    world.execute(B, Tag(0), put(0));
}

#[test]
fn session_with_many_queued_bytes_is_backlogged() {
    let mut world = World::attached();
    let mut running = world.execute(A, Tag(0), put_bytes(0, 100_000));
    let mut sent = 1;
    while !world.sessions.is_backlogged(A) {
        assert!(world.receive(A, Tag(sent), put_bytes(0, 100_000)).is_empty());
        sent += 1;
    }
    assert!(usize::from(sent) * 100_000 > BACKLOG_BYTES_MAX - 100_000);
    assert!(usize::from(sent) * 100_000 < BACKLOG_BYTES_MAX + 200_000);
    let mut done = 0;
    while world.sessions.is_backlogged(A) {
        running = executed(&world.handle(ServerInput::Finished(running.key))).unwrap();
        done += 1;
    }
    assert_eq!(done, 1);
}

#[test]
fn drain_cancels_only_waiting_locks() {
    let mut world = World::attached();
    let lock = world.execute(A, Tag(3), lock());
    assert!(world.handle(ServerInput::SlotReleased(lock.key)).is_empty());
    let change = world.execute(A, Tag(0), put(0));
    world.receive(A, Tag(1), put(1));
    world.execute(A, Tag(2), stat());
    assert_eq!(world.handle(ServerInput::Drain), [ServerOutput::Stop(lock.key)]);
    assert!(world.receive(A, Tag(4), stat()).is_empty(), "no request is accepted");
    assert_eq!(executed(&world.handle(ServerInput::Finished(change.key))).unwrap().tag, Tag(1));
}
