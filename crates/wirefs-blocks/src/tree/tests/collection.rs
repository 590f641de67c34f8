//! What is collected, when, and what is not.

use super::world::{PAYLOAD_BYTES, World, at, bytes};
use crate::limits::{REAP_BLOCKS_MAX, RUN_PIECES, RUNS_REMOVED_MAX};
use bytes::Bytes;
use std::collections::BTreeSet;
use wirefs_op::message::put::{Create, PutMode, Tput};
use wirefs_op::wire::Data;
use wirefs_op::{Cred, Errno, Kind, Request, SetStat};

#[test]
fn a_change_leaves_nothing_behind() {
    let world = World::new();
    for round in 0..50 {
        world.create("f", bytes(4000, round)).unwrap();
        world.audit();
        world.rename("f", "g", 0).unwrap();
        world.audit();
        world.remove("g").unwrap();
        world.audit();
    }
}

#[test]
fn a_small_change_writes_one_path_and_drops_one() {
    let world = World::new();
    for number in 0..500 {
        world.create(&format!("{number}"), bytes(200, 1)).unwrap();
    }
    let before = world.tree.figures();
    world.write(at("250"), 0, bytes(10, 2)).unwrap();
    let after = world.tree.figures();
    // Head, two levels of links, root.
    assert!(after.registered - before.registered <= 4);
    assert_eq!(after.registered - before.registered, after.deregistered - before.deregistered);
}

#[test]
fn a_file_without_a_name_lives_while_it_is_open() {
    let world = World::new();
    let data = bytes(30_000, 1);
    world.create("f", data.clone()).unwrap();
    let opened = world.open_file("f").unwrap();
    world.remove("f").unwrap();
    world.collect();
    assert_eq!(world.read_open(&opened), Ok(data));
    assert!(world.store.all().len() > 20);
    world.close(&opened).unwrap();
    world.collect();
    world.audit();
    assert_eq!(world.store.all().len(), 2);
}

#[test]
fn a_file_that_was_open_when_the_tree_was_left_is_removed_at_the_next_opening() {
    let world = World::new();
    world.create("f", bytes(30_000, 1)).unwrap();
    world.open_file("f").unwrap();
    world.remove("f").unwrap();
    let world = world.reopened(0);
    world.collect();
    world.audit();
    assert_eq!(world.store.all().len(), 2);
}

#[test]
fn a_file_that_never_had_a_name_is_removed_when_it_is_closed() {
    let world = World::new();
    let create = Create { kind: Kind::File, mode: 0o600, rdev: 0, cred: Cred::default() };
    let nameless = |mode: PutMode| Tput {
        target: at(""),
        mode: mode.and(PutMode::CREATE).and(PutMode::NAMELESS).and(PutMode::DATA),
        create: Some(create.clone()),
        set: SetStat::default(),
        offset: 0,
        data: Data(bytes(9000, 1)),
    };
    world.ask(Request::Put(nameless(PutMode::MORE.and(PutMode::WRITE)))).unwrap();
    assert!(world.store.all().len() > 2);
    world.tree.end(super::world::SESSION);
    world.collect();
    assert_eq!(world.store.all().len(), 2);
    world.tree.attach(super::world::SESSION, &wirefs_op::TreePath::root()).unwrap();
    world.ask(Request::Put(nameless(PutMode::NONE))).unwrap();
    world.collect();
    assert_eq!(world.store.all().len(), 2);
}

/// A file of several times what one change removes.
fn large(world: &World) -> u64 {
    let pieces = RUN_PIECES * RUNS_REMOVED_MAX as u64 * 3;
    let size = pieces * (PAYLOAD_BYTES as u64 - 22);
    world.create("f", Bytes::new()).unwrap();
    let part = 128 * 1024;
    for offset in (0..size).step_by(part) {
        world.write(at("f"), offset, bytes(part.min((size - offset) as usize), 1)).unwrap();
    }
    size
}

#[test]
fn a_large_file_is_removed_in_bounded_steps() {
    let world = World::of(PAYLOAD_BYTES, 1 << 20, 8 << 20);
    large(&world);
    let before = world.tree.figures();
    world.remove("f").unwrap();
    let step = world.tree.figures().deregistered - before.deregistered;
    let per_change = RUN_PIECES * RUNS_REMOVED_MAX as u64;
    assert!(step < 3 * per_change, "{step} blocks in one change");
    assert!(world.tree.figures().backlog > 0);
    // It goes on with the changes that follow, or when there is nothing else to do.
    for number in 0..8 {
        world.create("other", bytes(10, number)).unwrap();
    }
    assert_eq!(world.tree.figures().backlog, 0);
    world.audit();
}

#[test]
fn what_is_cut_off_a_large_file_is_gone_at_once_and_collected_in_steps() {
    let world = World::of(PAYLOAD_BYTES, 1 << 20, 8 << 20);
    let size = large(&world);
    world.resize("f", 5000).unwrap();
    assert!(world.tree.figures().backlog > 0);
    // It grows again before all of it is removed.
    world.resize("f", size).unwrap();
    let whole = world.read("f").unwrap();
    assert!(whole.slice(5000..).iter().all(|byte| *byte == 0), "what was cut off came back");
    world.collect();
    world.audit();
    world.write(at("f"), size - 10, bytes(10, 3)).unwrap();
    world.resize("f", 100).unwrap();
    // And what is left over is removed when the tree is opened again.
    let world = world.reopened(0);
    world.collect();
    world.audit();
}

#[test]
fn a_dropped_checkpoint_is_taken_apart_in_bounded_steps() {
    let world = World::of(PAYLOAD_BYTES, 1 << 20, 8 << 20);
    for number in 0..2000 {
        world.create(&format!("{number}"), bytes(600, 1)).unwrap();
    }
    world.tree.create_checkpoint(b"one").unwrap();
    for number in 0..2000 {
        world.remove(&format!("{number}")).unwrap();
    }
    world.collect();
    world.audit();
    assert!(world.store.all().len() > 1000);
    let before = world.tree.figures();
    world.tree.drop_checkpoint(b"one").unwrap();
    let step = world.tree.figures().deregistered - before.deregistered;
    assert!(step <= REAP_BLOCKS_MAX as u64 + 8, "{step} blocks in one change");
    world.collect();
    world.audit();
    assert_eq!(world.store.all().len(), 2);
}

#[test]
fn taking_apart_goes_on_where_the_tree_was_left() {
    let world = World::of(PAYLOAD_BYTES, 1 << 20, 8 << 20);
    for number in 0..1000 {
        world.create(&format!("{number}"), bytes(600, 1)).unwrap();
    }
    world.tree.create_checkpoint(b"one").unwrap();
    for number in 0..1000 {
        world.remove(&format!("{number}")).unwrap();
    }
    world.tree.drop_checkpoint(b"one").unwrap();
    world.tree.collect(2);
    assert!(world.tree.figures().backlog > 0);
    let world = world.reopened(0);
    world.collect();
    world.audit();
    assert_eq!(world.store.all().len(), 2);
}

#[test]
fn a_full_store_takes_nothing_more_and_gives_room_when_something_is_removed() {
    let world = World::of(PAYLOAD_BYTES, 600, 1 << 20);
    let mut made = 0;
    let errno = loop {
        match world.create(&format!("{made}"), bytes(10_000, 1)) {
            Ok(_) => made += 1,
            Err(errno) => break errno,
        }
    };
    assert_eq!(errno, Errno::NoSpace);
    assert!(made > 20);
    world.audit();
    let room = world.store.inner.clone();
    for number in 0..made {
        world.remove(&format!("{number}")).unwrap();
    }
    world.audit();
    drop(room);
    world.create("again", bytes(10_000, 2)).unwrap();
}

#[test]
fn a_full_store_makes_room_from_what_waits_to_be_collected() {
    let world = World::of(PAYLOAD_BYTES, 12_000, 8 << 20);
    let size = large(&world);
    world.remove("f").unwrap();
    assert!(world.tree.figures().backlog > 0);
    // As large as the store is; it fits only if all of the other is gone.
    world.create("g", Bytes::new()).unwrap();
    for offset in (0..size).step_by(128 * 1024) {
        world.write(at("g"), offset, bytes(128 * 1024, 2)).unwrap();
    }
    world.collect();
    world.audit();
}

#[test]
fn a_directory_that_is_open_lives_until_it_is_closed() {
    let world = World::new();
    world.mkdir("d").unwrap();
    let opened = world.open_file("d").unwrap();
    world.rmdir("d").unwrap();
    assert_eq!(world.read_open(&opened), Ok(Bytes::new()));
    world.close(&opened).unwrap();
    world.collect();
    assert_eq!(world.store.all().len(), 2);
}

#[test]
fn ids_are_never_used_twice() {
    let world = World::new();
    let mut seen: BTreeSet<crate::id::BlockId> = world.store.all();
    let mut world = world;
    for round in 0..30 {
        let before = world.store.all();
        world.create("f", bytes(5000, round)).unwrap();
        let new: BTreeSet<_> = world.store.all().difference(&before).copied().collect();
        assert!(new.is_disjoint(&seen));
        let oldest = new.first().copied().unwrap();
        assert!(seen.iter().all(|id| *id < oldest));
        seen.extend(new);
        if round % 7 == 0 {
            world = world.reopened(0);
        }
    }
}
