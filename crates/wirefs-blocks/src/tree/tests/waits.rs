//! How often operations wait for blocks, one after the other.

use super::world::{PAYLOAD_BYTES, World, at, bytes};
use crate::block::Block;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use wirefs_op::SetStat;

const DIRS: usize = 150;
const FILES: usize = 20;
/// Memory for all link blocks of the tree below and a few heads; the tree itself is of 2.4 MB.
const RAM_BYTES: usize = 150_000;

fn size(dir: usize, file: usize) -> usize {
    (dir * 37 + file * 101) % 1200
}

/// Directories of small files, made side by side as a program unpacks them.
fn filled() -> World {
    let world = World::of(PAYLOAD_BYTES, 1 << 20, 64 << 20);
    for dir in 0..DIRS {
        world.mkdir(&format!("d{dir}")).unwrap();
    }
    for file in 0..FILES {
        for dir in 0..DIRS {
            world.create(&format!("d{dir}/f{file}"), bytes(size(dir, file), 1)).unwrap();
        }
    }
    world
}

fn waits<R>(world: &World, op: impl FnOnce(&World) -> R) -> u64 {
    let before = world.tree.figures().waits;
    op(world);
    world.tree.figures().waits - before
}

fn read_one(world: &World, number: usize) {
    let (dir, file) = (number * 6007 % DIRS, number * 7 % FILES);
    assert_eq!(world.read(&format!("d{dir}/f{file}")), Ok(bytes(size(dir, file), 1)));
}

/// The waits of reads of small files here and there: the most, and the mean.
fn reads(world: &World) -> (u64, f64) {
    const READS: usize = 500;
    // What leads to many is at hand after a few.
    for number in 0..100 {
        read_one(world, number * 13);
    }
    let counts: Vec<u64> = (0..READS).map(|number| waits(world, |world| read_one(world, number))).collect();
    let sum: u64 = counts.iter().sum();
    (counts.into_iter().max().unwrap_or_default(), sum as f64 / READS as f64)
}

#[test]
fn a_small_file_is_read_with_two_waits_at_most() {
    let world = filled();
    let links =
        world.store.all().into_iter().filter(|id| matches!(world.store.block(*id), Some(Block::Link { .. })));
    assert!(links.count() * PAYLOAD_BYTES < RAM_BYTES);
    // A store that brings nothing along.
    let world = world.reopened(RAM_BYTES);
    let (most, mean) = reads(&world);
    assert!(most <= 2 && mean <= 2.0, "{most} waits at most, {mean} in the mean");
    // One by which all blocks pass all the time.
    world.store.takes_hints.store(true, Ordering::Relaxed);
    let world = world.reopened(RAM_BYTES);
    let (most, mean) = reads(&world);
    assert!(most <= 2 && mean <= 1.4, "{most} waits at most, {mean} in the mean");
}

#[test]
fn looking_up_in_a_directory_that_was_listed_waits_for_nothing() {
    let world = filled().reopened(RAM_BYTES);
    for dir in [7, 70, 149] {
        world.list(&format!("d{dir}")).unwrap();
        for file in 0..FILES {
            let path = format!("d{dir}/f{file}");
            assert_eq!(waits(&world, |world| world.stat(&path).unwrap()), 0, "{path}");
        }
        assert_eq!(waits(&world, |world| world.list(&format!("d{dir}")).unwrap()), 0);
    }
}

#[test]
fn a_directory_is_listed_with_two_waits() {
    let world = filled().reopened(RAM_BYTES);
    reads(&world);
    for dir in [3, 33, 133] {
        // Its names, then the heads of all its files together.
        assert!(waits(&world, |world| world.list(&format!("d{dir}")).unwrap()) <= 2);
    }
}

#[test]
fn a_large_file_is_read_with_few_waits() {
    let world = World::of(PAYLOAD_BYTES, 1 << 20, 1 << 20);
    let size = 4 << 20;
    world.create("f", bytes(10, 1)).unwrap();
    for offset in (0..size).step_by(128 * 1024) {
        world.write(at("f"), offset, bytes(128 * 1024, 1)).unwrap();
    }
    let world = world.reopened(RAM_BYTES);
    let waited = waits(&world, |world| world.read("f").unwrap());
    // Down to the head; for each window its runs, and its contents all at once.
    assert!(waited <= 3 + 4 * 4, "{waited} waits for {size} bytes");
}

#[test]
fn a_change_waits_for_the_path_to_it_and_not_again_for_the_next_one() {
    let world = filled().reopened(RAM_BYTES);
    reads(&world);
    let mut told = BTreeMap::new();
    let mut tell = |name: &'static str, op: &dyn Fn(&World)| {
        told.insert(name, waits(&world, op));
    };
    tell("1 create", &|world| {
        world.create("d9/new", bytes(10, 1)).unwrap();
    });
    tell("2 write", &|world| {
        world.write(at("d9/new"), 5, bytes(100, 1)).unwrap();
    });
    tell("3 set", &|world| {
        world.set("d9/new", SetStat { mode: Some(0o600), ..SetStat::default() }).unwrap();
    });
    tell("4 rename within", &|world| world.rename("d9/new", "d9/newer", 0).unwrap());
    tell("5 rename across", &|world| world.rename("d9/newer", "d11/new", 0).unwrap());
    tell("6 remove", &|world| world.remove("d11/new").unwrap());
    tell("7 mkdir", &|world| {
        world.mkdir("d12/dir").unwrap();
    });
    tell("8 rmdir", &|world| world.rmdir("d12/dir").unwrap());
    let most = BTreeMap::from([
        ("1 create", 2),
        ("2 write", 0),
        ("3 set", 0),
        ("4 rename within", 1),
        ("5 rename across", 1),
        ("6 remove", 0),
        ("7 mkdir", 2),
        ("8 rmdir", 0),
    ]);
    for (name, waited) in &told {
        assert!(*waited <= most[name], "{name} waits {waited} times: {told:?}");
    }
}
