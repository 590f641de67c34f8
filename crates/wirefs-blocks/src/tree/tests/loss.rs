//! Stores that lose blocks: the damage stays in what was in them, and is told as EIO.

use super::world::{Meanwhile, World, at, bytes};
use crate::block::{Block, Item};
use crate::id::BlockId;
use crate::item::Entry;
use crate::key::{Ino, Key, Part, SYSTEM};
use crate::store::BlockStore;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wirefs_op::{Errno, Kind};

/// A tree without a cache, so that each block counts.
fn filled() -> World {
    let world = World::of(1400, 1 << 20, 0);
    for dir in 0..10 {
        world.mkdir(&format!("{dir}")).unwrap();
        for file in 0..30_u8 {
            world.create(&format!("{dir}/{file}"), bytes(usize::from(file) * 150, file)).unwrap();
        }
    }
    world
}

/// The blocks of the present tree of files that are like this.
fn blocks(world: &World, is: impl Fn(&Block) -> bool) -> Vec<BlockId> {
    let reached = world.below(world.tree.volume().root.files);
    reached.into_iter().filter(|id| world.store.block(*id).is_some_and(|block| is(&block))).collect()
}

fn paths() -> impl Iterator<Item = (String, u8)> {
    (0..10).flat_map(|dir| (0..30_u8).map(move |file| (format!("{dir}/{file}"), file)))
}

#[test]
fn a_lost_block_of_contents_harms_one_file() {
    let world = filled();
    let contents = blocks(&world, |block| matches!(block, Block::Contents { .. }));
    for id in contents.into_iter().step_by(37).take(5) {
        let world = filled();
        world.store.lose(id);
        let failed: Vec<String> = paths()
            .filter(|(path, file)| match world.read(path) {
                Ok(data) => {
                    assert_eq!(data, bytes(usize::from(*file) * 150, *file));
                    false
                }
                Err(errno) => errno == Errno::Io,
            })
            .map(|(path, _)| path)
            .collect();
        assert_eq!(failed.len(), 1, "{failed:?}");
        let path = &failed[0];
        // All but the bytes is there, and can be written anew.
        assert!(world.stat(path).is_ok());
        world.resize(path, 0).unwrap();
        world.write(at(path), 0, bytes(4000, 9)).unwrap();
        assert_eq!(world.read(path), Ok(bytes(4000, 9)));
        world.remove(path).unwrap();
    }
}

#[test]
fn a_lost_head_block_harms_what_was_in_it() {
    let world = filled();
    let heads = blocks(&world, |block| matches!(block, Block::Head(_)));
    for id in heads.into_iter().step_by(11) {
        let world = filled();
        let Some(Block::Head(items)) = world.store.block(id) else { panic!("no such block") };
        let held: BTreeSet<u64> = items.iter().map(|item| item.key.ino.0).collect();
        world.store.lose(id);
        for (path, file) in paths() {
            match world.read(&path) {
                Ok(data) => assert_eq!(data, bytes(usize::from(file) * 150, file)),
                Err(errno) => assert_eq!(errno, Errno::Io),
            }
        }
        let harmed = paths().filter(|(path, _)| world.stat(path).is_err()).count();
        // The heads in it; with the entries of a directory, what they name.
        let entries = items.iter().filter(|item| item.key.part == Part::Entry).count();
        assert!(harmed <= held.len() + entries + 30, "{harmed} files for {} objects", held.len());
        // Other directories are worked in as before.
        let worked = (0..10).filter(|dir| world.create(&format!("{dir}/new"), bytes(10, 1)).is_ok()).count();
        assert!(worked >= 8, "{worked} of 10");
    }
}

#[test]
fn names_of_lost_objects_are_listed_and_can_be_removed() {
    let world = filled();
    let is_of_files = |block: &Block| match block {
        Block::Head(items) => {
            items.iter().all(|item| item.key.part == Part::Head && item.key.ino.next().is_some())
        }
        _ => false,
    };
    let heads = blocks(&world, is_of_files);
    let id = heads[heads.len() / 2];
    world.store.lose(id);
    let lost: Vec<String> =
        paths().map(|(path, _)| path).filter(|path| world.stat(path) == Err(Errno::Io)).collect();
    assert!((1..20).contains(&lost.len()), "{lost:?}");
    let dir = lost[0].split('/').next().unwrap();
    let listed = world.list(dir).unwrap();
    assert_eq!(listed.len(), 30);
    let of_lost = listed.iter().find(|entry| lost[0].ends_with(std::str::from_utf8(&entry.name).unwrap()));
    assert!(of_lost.is_some_and(|entry| entry.stat.kind == Kind::File));
    for path in &lost {
        world.remove(path).unwrap();
        assert_eq!(world.stat(path), Err(Errno::NotFound));
    }
    assert_eq!(world.list(dir).unwrap().len(), 30 - lost.iter().filter(|path| path.starts_with(dir)).count());
}

#[test]
fn what_loses_its_names_while_it_is_late_is_removed_when_it_is_back() {
    let world = filled();
    let odd = |file: u8| file % 2 == 1;
    let other_name = |path: &str| format!("also-{}", path.replace('/', "-"));
    for (path, _) in paths().filter(|(_, file)| odd(*file)) {
        world.link(&path, &other_name(&path)).unwrap();
    }
    let inos: BTreeMap<String, u64> =
        paths().map(|(path, _)| (path.clone(), world.stat(&path).unwrap().id.ino)).collect();
    let files: BTreeSet<u64> = inos.values().copied().collect();
    let heads_in = |items: &[Item]| items.iter().filter(|item| item.key.part == Part::Head).count();
    let is_of_files = |block: &Block| match block {
        Block::Head(items) => heads_in(items) > 1 && items.iter().all(|item| files.contains(&item.key.ino.0)),
        _ => false,
    };
    let of_many = blocks(&world, is_of_files).into_iter().next();
    world.store.hold_back(of_many);
    let late: Vec<(String, u8)> = paths().filter(|(path, _)| world.stat(path) == Err(Errno::Io)).collect();
    assert!(late.iter().any(|(_, file)| odd(*file)) && late.iter().any(|(_, file)| !odd(*file)));
    for (path, _) in &late {
        world.remove(path).unwrap();
    }
    world.store.hold_back([]);
    let world = world.reopened(0);
    world.collect();
    world.audit();
    for (path, file) in late {
        if odd(file) {
            assert_eq!(world.stat(&other_name(&path)).unwrap().nlink, 1);
            assert_eq!(world.read(&other_name(&path)), Ok(bytes(usize::from(file) * 150, file)));
        } else {
            let head = world.tree.look(|trees| trees.present().head(Ino(inos[&path])).map(drop));
            assert_eq!(head.map(drop), Err(Errno::Stale), "{path}");
        }
    }
    let dead = world
        .tree
        .look(|trees| trees.present().scan(Key::dead(Ino(0))..=Key::new(SYSTEM, Part::Dead, u64::MAX), 1));
    assert_eq!(dead.unwrap().0, []);
}

#[test]
fn a_directory_that_is_late_is_not_taken_for_an_empty_one() {
    let world = filled();
    let ino = world.stat("3").unwrap().id.ino;
    let has_head = |block: &Block| match block {
        Block::Head(items) => items.iter().any(|item| item.key == Key::head(Ino(ino))),
        _ => false,
    };
    let head = blocks(&world, has_head);
    assert_eq!(head.len(), 1);
    world.mkdir("empty").unwrap();
    world.store.hold_back(blocks(&world, has_head));
    assert_eq!(world.stat("3").map(drop), Err(Errno::Io));
    assert_eq!(world.rmdir("3"), Err(Errno::Io));
    assert_eq!(world.rename("empty", "3", 0), Err(Errno::Io));
    world.store.hold_back([]);
    assert_eq!(world.list("3").unwrap().len(), 30);
    world.audit();
}

#[test]
fn a_damaged_block_counts_as_lost() {
    let world = filled();
    let contents = blocks(&world, |block| matches!(block, Block::Contents { .. }));
    let id = contents[0];
    world.store.inner.deregister(&[id]);
    world.store.inner.register(&[(id, Bytes::from_static(b"\xffnot a block"))]).unwrap();
    assert_eq!(paths().filter(|(path, _)| world.read(path) == Err(Errno::Io)).count(), 1);
    assert!(world.tree.figures().lost == 0, "it was delivered, but not what was registered");
}

/// A tree that lost a block, and blocks that only it named.
fn with_orphans() -> World {
    let world = World::of(1400, 1 << 20, 0);
    for file in 0..40 {
        world.create(&format!("{file}"), bytes(20_000, file)).unwrap();
    }
    world.tree.create_checkpoint(b"one").unwrap();
    world.create("0", bytes(20_000, 99)).unwrap();
    // A block that names contents and has no entries of the root directory.
    let is_leaf = |block: &Block| match block {
        Block::Head(items) => {
            items.iter().any(|item| item.key.part == Part::Run)
                && items
                    .iter()
                    .all(|item| Entry::decode(item.value.clone()).is_err() || item.key.part != Part::Entry)
        }
        _ => false,
    };
    let leaves = blocks(&world, is_leaf);
    let lost = leaves[leaves.len() / 2];
    world.store.lose(lost);
    let orphans = world.store.all().difference(&world.reached()).count();
    assert!(orphans > 10, "{orphans} blocks without a name");
    world
}

#[test]
fn what_only_a_lost_block_could_name_is_swept_up() {
    let world = with_orphans();
    sweep(&world);
    let left: Vec<BlockId> = world.store.all().difference(&world.reached()).copied().collect();
    assert_eq!(left, [], "still there");
    let missing = world.reached().difference(&world.store.all()).count();
    assert_eq!(missing, 0);
}

#[test]
fn changes_go_on_while_it_is_looked_for_what_nothing_names() {
    let world = Arc::new(with_orphans());
    let other = Arc::clone(&world);
    *world.store.meanwhile.lock().unwrap() = Some(Meanwhile(Box::new(move || {
        assert!(other.tree.changes.try_lock().is_ok(), "changes wait for the network");
        // Other blocks lead to all that is looked at when it goes on.
        for file in 40..80 {
            other.create(&format!("{file}"), bytes(20_000, file)).unwrap();
        }
    })));
    sweep(&world);
    let left: Vec<BlockId> = world.store.all().difference(&world.reached()).copied().collect();
    assert_eq!(left, [], "still there");
    assert_eq!(world.reached().difference(&world.store.all()).count(), 0);
    assert!((40..80).all(|file| world.read(&format!("{file}")) == Ok(bytes(20_000, file))));
}

/// Head and link blocks that only the one checkpoint reaches.
fn of_checkpoint(world: &World) -> Vec<BlockId> {
    let volume = world.tree.volume();
    let present = world.below(volume.root.files);
    let kept = world.below(volume.checkpoints[0].files).into_iter().filter(|id| !present.contains(id));
    let is_inner = |id: &BlockId| !matches!(world.store.block(*id), Some(Block::Contents { .. }));
    kept.filter(is_inner).collect()
}

/// All steps of a sweep.
fn sweep(world: &World) {
    let mut after = None;
    loop {
        after = world.tree.sweep(after).next;
        if after.is_none() {
            return;
        }
    }
}

#[test]
fn what_a_late_block_names_is_not_swept_up() {
    let world = World::of(1400, 1 << 20, 0);
    for file in 0..40 {
        world.create(&format!("{file}"), bytes(20_000, file)).unwrap();
    }
    let inner = |block: &Block| matches!(block, Block::Head(_) | Block::Link { .. });
    let all = world.store.all();
    for id in blocks(&world, inner) {
        world.store.hold_back([id]);
        sweep(&world);
        assert_eq!(world.store.all(), all, "{id}");
    }
    world.store.hold_back([]);
    for file in 0..40 {
        assert_eq!(world.read(&format!("{file}")), Ok(bytes(20_000, file)));
    }
    world.audit();
}

#[test]
fn a_dying_tree_with_late_blocks_is_taken_apart_but_for_them_and_wholly_when_they_are_back() {
    for step in [1, 7, 40] {
        let world = World::of(1400, 1 << 20, 0);
        for number in 0..1_500 {
            world.create(&format!("{number}"), bytes(300, 1)).unwrap();
        }
        world.tree.create_checkpoint(b"one").unwrap();
        for number in 0..1_500 {
            world.remove(&format!("{number}")).unwrap();
        }
        world.collect();
        world.store.hold_back(of_checkpoint(&world).into_iter().step_by(step));
        world.tree.drop_checkpoint(b"one").unwrap();
        // As long as something is late it ends, having done what it can.
        world.collect();
        world.collect();
        assert!(world.tree.figures().backlog > 0, "buried too early");
        world.store.hold_back([]);
        world.collect();
        world.audit();
        assert_eq!(world.store.all().len(), 2, "every {step}th was late");
    }
}

#[test]
fn a_dying_tree_whose_blocks_are_gone_is_buried_and_what_they_named_is_swept_up() {
    let world = World::of(1400, 1 << 20, 0);
    for number in 0..2_000 {
        world.create(&format!("{number}"), bytes(600, 1)).unwrap();
    }
    world.tree.create_checkpoint(b"one").unwrap();
    for number in 0..2_000 {
        world.remove(&format!("{number}")).unwrap();
    }
    world.collect();
    let is_link = |id: &BlockId| matches!(world.store.block(*id), Some(Block::Link { .. }));
    let links: Vec<BlockId> = of_checkpoint(&world).into_iter().filter(is_link).collect();
    assert!(links.len() > 1);
    world.store.lose(links[0]);
    world.tree.drop_checkpoint(b"one").unwrap();
    world.collect();
    assert_eq!(world.tree.figures().backlog, 0);
    assert!(world.store.all().len() > 2, "nothing names them any more");
    sweep(&world);
    world.collect();
    world.audit();
    assert_eq!(world.store.all().len(), 2);
}

#[test]
fn an_object_that_was_late_when_it_was_to_be_removed_is_removed_after_a_sweep() {
    let world = World::of(1400, 1 << 20, 0);
    for number in 0..50 {
        world.create(&format!("{number}"), bytes(9_000, 1)).unwrap();
    }
    let inos: BTreeSet<u64> =
        (0..50).map(|number| world.stat(&format!("{number}")).unwrap().id.ino).collect();
    let of_files = |block: &Block| match block {
        Block::Head(items) => items.iter().all(|item| inos.contains(&item.key.ino.0)),
        _ => false,
    };
    world.store.hold_back(blocks(&world, of_files));
    let late: Vec<String> =
        (0..50).map(|n| format!("{n}")).filter(|path| world.stat(path) == Err(Errno::Io)).collect();
    assert!(!late.is_empty());
    for path in &late {
        world.remove(path).unwrap();
    }
    world.collect();
    world.store.hold_back([]);
    sweep(&world);
    world.collect();
    world.audit();
}
