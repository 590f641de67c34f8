//! Stores that lose blocks: damage is confined to the lost data and reported as EIO.

use super::fixture::{Meanwhile, TreeFixture, at, bytes};
use crate::block::{Block, Item};
use crate::id::BlockId;
use crate::item::Entry;
use crate::key::{Ino, Key, Part, SYSTEM};
use crate::store::BlockStore;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wirefs_op::{Errno, Kind};

/// A tree without a cache, so that each lost block matters.
fn filled() -> TreeFixture {
    let fixture = TreeFixture::of(1400, 1 << 20, 0);
    for dir in 0..10 {
        fixture.mkdir(&format!("{dir}")).unwrap();
        for file in 0..30_u8 {
            fixture.create(&format!("{dir}/{file}"), bytes(usize::from(file) * 150, file)).unwrap();
        }
    }
    fixture
}

/// Returns the blocks of the live tree that satisfy `is`.
fn blocks(fixture: &TreeFixture, is: impl Fn(&Block) -> bool) -> Vec<BlockId> {
    let reached = fixture.below(fixture.tree.volume().root.files);
    reached.into_iter().filter(|id| fixture.store.block(*id).is_some_and(|block| is(&block))).collect()
}

fn paths() -> impl Iterator<Item = (String, u8)> {
    (0..10).flat_map(|dir| (0..30_u8).map(move |file| (format!("{dir}/{file}"), file)))
}

#[test]
fn lost_contents_block_damages_one_file() {
    let fixture = filled();
    let contents = blocks(&fixture, |block| matches!(block, Block::Contents { .. }));
    for id in contents.into_iter().step_by(37).take(5) {
        let fixture = filled();
        fixture.store.lose(id);
        let failed: Vec<String> = paths()
            .filter(|(path, file)| match fixture.read(path) {
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
        // Everything but the data is intact, and the data can be rewritten.
        assert!(fixture.stat(path).is_ok());
        fixture.resize(path, 0).unwrap();
        fixture.write(at(path), 0, bytes(4000, 9)).unwrap();
        assert_eq!(fixture.read(path), Ok(bytes(4000, 9)));
        fixture.remove(path).unwrap();
    }
}

#[test]
fn lost_head_block_damages_only_its_objects() {
    let fixture = filled();
    let heads = blocks(&fixture, |block| matches!(block, Block::Head(_)));
    for id in heads.into_iter().step_by(11) {
        let fixture = filled();
        let Some(Block::Head(items)) = fixture.store.block(id) else { panic!("no such block") };
        let held: BTreeSet<u64> = items.iter().map(|item| item.key.ino.0).collect();
        fixture.store.lose(id);
        for (path, file) in paths() {
            match fixture.read(&path) {
                Ok(data) => assert_eq!(data, bytes(usize::from(file) * 150, file)),
                Err(errno) => assert_eq!(errno, Errno::Io),
            }
        }
        let harmed = paths().filter(|(path, _)| fixture.stat(path).is_err()).count();
        // The heads in the block, and for directory entries the objects that they refer to.
        let entries = items.iter().filter(|item| item.key.part == Part::Entry).count();
        assert!(harmed <= held.len() + entries + 30, "{harmed} files for {} objects", held.len());
        // Other directories work as before.
        let worked =
            (0..10).filter(|dir| fixture.create(&format!("{dir}/new"), bytes(10, 1)).is_ok()).count();
        assert!(worked >= 8, "{worked} of 10");
    }
}

#[test]
fn names_of_lost_objects_are_listed_and_can_be_removed() {
    let fixture = filled();
    let is_of_files = |block: &Block| match block {
        Block::Head(items) => {
            items.iter().all(|item| item.key.part == Part::Head && item.key.ino.next().is_some())
        }
        _ => false,
    };
    let heads = blocks(&fixture, is_of_files);
    let id = heads[heads.len() / 2];
    fixture.store.lose(id);
    let lost: Vec<String> =
        paths().map(|(path, _)| path).filter(|path| fixture.stat(path) == Err(Errno::Io)).collect();
    assert!((1..20).contains(&lost.len()), "{lost:?}");
    let dir = lost[0].split('/').next().unwrap();
    let listed = fixture.list(dir).unwrap();
    assert_eq!(listed.len(), 30);
    let of_lost = listed.iter().find(|entry| lost[0].ends_with(std::str::from_utf8(&entry.name).unwrap()));
    assert!(of_lost.is_some_and(|entry| entry.stat.kind == Kind::File));
    for path in &lost {
        fixture.remove(path).unwrap();
        assert_eq!(fixture.stat(path), Err(Errno::NotFound));
    }
    assert_eq!(
        fixture.list(dir).unwrap().len(),
        30 - lost.iter().filter(|path| path.starts_with(dir)).count()
    );
}

#[test]
fn object_unlinked_while_delayed_is_removed_when_it_returns() {
    let fixture = filled();
    let odd = |file: u8| file % 2 == 1;
    let other_name = |path: &str| format!("also-{}", path.replace('/', "-"));
    for (path, _) in paths().filter(|(_, file)| odd(*file)) {
        fixture.link(&path, &other_name(&path)).unwrap();
    }
    let inos: BTreeMap<String, u64> =
        paths().map(|(path, _)| (path.clone(), fixture.stat(&path).unwrap().id.ino)).collect();
    let files: BTreeSet<u64> = inos.values().copied().collect();
    let heads_in = |items: &[Item]| items.iter().filter(|item| item.key.part == Part::Head).count();
    let is_of_files = |block: &Block| match block {
        Block::Head(items) => heads_in(items) > 1 && items.iter().all(|item| files.contains(&item.key.ino.0)),
        _ => false,
    };
    let of_many = blocks(&fixture, is_of_files).into_iter().next();
    fixture.store.hold_back(of_many);
    let delayed: Vec<(String, u8)> =
        paths().filter(|(path, _)| fixture.stat(path) == Err(Errno::Io)).collect();
    assert!(delayed.iter().any(|(_, file)| odd(*file)) && delayed.iter().any(|(_, file)| !odd(*file)));
    for (path, _) in &delayed {
        fixture.remove(path).unwrap();
    }
    fixture.store.hold_back([]);
    let fixture = fixture.reopened(0);
    fixture.collect();
    fixture.audit();
    for (path, file) in delayed {
        if odd(file) {
            assert_eq!(fixture.stat(&other_name(&path)).unwrap().nlink, 1);
            assert_eq!(fixture.read(&other_name(&path)), Ok(bytes(usize::from(file) * 150, file)));
        } else {
            let head = fixture.tree.read_tree(|trees| trees.present().head(Ino(inos[&path])).map(drop));
            assert_eq!(head.map(drop), Err(Errno::Stale), "{path}");
        }
    }
    let dead = fixture.tree.read_tree(|trees| {
        trees.present().scan(Key::orphan(Ino(0))..=Key::new(SYSTEM, Part::Orphan, u64::MAX), 1)
    });
    assert_eq!(dead.unwrap().0, []);
}

#[test]
fn delayed_directory_does_not_count_as_empty() {
    let fixture = filled();
    let ino = fixture.stat("3").unwrap().id.ino;
    let has_head = |block: &Block| match block {
        Block::Head(items) => items.iter().any(|item| item.key == Key::head(Ino(ino))),
        _ => false,
    };
    let head = blocks(&fixture, has_head);
    assert_eq!(head.len(), 1);
    fixture.mkdir("empty").unwrap();
    fixture.store.hold_back(blocks(&fixture, has_head));
    assert_eq!(fixture.stat("3").map(drop), Err(Errno::Io));
    assert_eq!(fixture.rmdir("3"), Err(Errno::Io));
    assert_eq!(fixture.rename("empty", "3", 0), Err(Errno::Io));
    fixture.store.hold_back([]);
    assert_eq!(fixture.list("3").unwrap().len(), 30);
    fixture.audit();
}

#[test]
fn a_damaged_block_counts_as_lost() {
    let fixture = filled();
    let contents = blocks(&fixture, |block| matches!(block, Block::Contents { .. }));
    let id = contents[0];
    fixture.store.inner.deregister(&[id]);
    fixture.store.inner.register(&[(id, Bytes::from_static(b"\xffnot a block"))]).unwrap();
    assert_eq!(paths().filter(|(path, _)| fixture.read(path) == Err(Errno::Io)).count(), 1);
    assert!(fixture.tree.statistics().lost == 0, "the store delivered damaged bytes");
}

/// A tree that lost a block, and the blocks that only it referenced.
fn with_orphans() -> TreeFixture {
    let fixture = TreeFixture::of(1400, 1 << 20, 0);
    for file in 0..40 {
        fixture.create(&format!("{file}"), bytes(20_000, file)).unwrap();
    }
    fixture.tree.create_checkpoint(b"one").unwrap();
    fixture.create("0", bytes(20_000, 99)).unwrap();
    // A block that refers to contents and has no entries of the root directory.
    let is_leaf = |block: &Block| match block {
        Block::Head(items) => {
            items.iter().any(|item| item.key.part == Part::Run)
                && items
                    .iter()
                    .all(|item| Entry::decode(item.value.clone()).is_err() || item.key.part != Part::Entry)
        }
        _ => false,
    };
    let leaves = blocks(&fixture, is_leaf);
    let lost = leaves[leaves.len() / 2];
    fixture.store.lose(lost);
    let orphans = fixture.store.all().difference(&fixture.reached()).count();
    assert!(orphans > 10, "{orphans} unreachable blocks");
    fixture
}

#[test]
fn blocks_below_a_lost_block_are_swept() {
    let fixture = with_orphans();
    sweep(&fixture);
    let left: Vec<BlockId> = fixture.store.all().difference(&fixture.reached()).copied().collect();
    assert_eq!(left, [], "still there");
    let missing = fixture.reached().difference(&fixture.store.all()).count();
    assert_eq!(missing, 0);
}

#[test]
fn changes_run_during_a_sweep() {
    let fixture = Arc::new(with_orphans());
    let other = Arc::clone(&fixture);
    *fixture.store.meanwhile.lock().unwrap() = Some(Meanwhile(Box::new(move || {
        assert!(other.tree.changes.try_lock().is_ok(), "changes wait for the network");
        // Fills other blocks, so that the collection continues in them.
        for file in 40..80 {
            other.create(&format!("{file}"), bytes(20_000, file)).unwrap();
        }
    })));
    sweep(&fixture);
    let left: Vec<BlockId> = fixture.store.all().difference(&fixture.reached()).copied().collect();
    assert_eq!(left, [], "still there");
    assert_eq!(fixture.reached().difference(&fixture.store.all()).count(), 0);
    assert!((40..80).all(|file| fixture.read(&format!("{file}")) == Ok(bytes(20_000, file))));
}

/// Returns the head and index blocks that only the checkpoint references.
fn of_checkpoint(fixture: &TreeFixture) -> Vec<BlockId> {
    let volume = fixture.tree.volume();
    let present = fixture.below(volume.root.files);
    let kept = fixture.below(volume.checkpoints[0].files).into_iter().filter(|id| !present.contains(id));
    let is_inner = |id: &BlockId| !matches!(fixture.store.block(*id), Some(Block::Contents { .. }));
    kept.filter(is_inner).collect()
}

/// Runs all steps of a sweep.
fn sweep(fixture: &TreeFixture) {
    let mut after = None;
    loop {
        after = fixture.tree.sweep(after).next;
        if after.is_none() {
            return;
        }
    }
}

#[test]
fn blocks_below_a_delayed_block_are_not_swept() {
    let fixture = TreeFixture::of(1400, 1 << 20, 0);
    for file in 0..40 {
        fixture.create(&format!("{file}"), bytes(20_000, file)).unwrap();
    }
    let inner = |block: &Block| matches!(block, Block::Head(_) | Block::Index { .. });
    let all = fixture.store.all();
    for id in blocks(&fixture, inner) {
        fixture.store.hold_back([id]);
        sweep(&fixture);
        assert_eq!(fixture.store.all(), all, "{id}");
    }
    fixture.store.hold_back([]);
    for file in 0..40 {
        assert_eq!(fixture.read(&format!("{file}")), Ok(bytes(20_000, file)));
    }
    fixture.audit();
}

#[test]
fn destruction_skips_delayed_blocks_and_completes_when_they_return() {
    for step in [1, 7, 40] {
        let fixture = TreeFixture::of(1400, 1 << 20, 0);
        for number in 0..1_500 {
            fixture.create(&format!("{number}"), bytes(300, 1)).unwrap();
        }
        fixture.tree.create_checkpoint(b"one").unwrap();
        for number in 0..1_500 {
            fixture.remove(&format!("{number}")).unwrap();
        }
        fixture.collect();
        fixture.store.hold_back(of_checkpoint(&fixture).into_iter().step_by(step));
        fixture.tree.drop_checkpoint(b"one").unwrap();
        // With delayed blocks, collection ends when no further progress is possible.
        fixture.collect();
        fixture.collect();
        assert!(fixture.tree.statistics().backlog > 0, "destruction ended too early");
        fixture.store.hold_back([]);
        fixture.collect();
        fixture.audit();
        assert_eq!(fixture.store.all().len(), 2, "every {step}th was delayed");
    }
}

#[test]
fn destruction_of_a_tree_with_lost_blocks_ends_and_the_rest_is_swept() {
    let fixture = TreeFixture::of(1400, 1 << 20, 0);
    for number in 0..2_000 {
        fixture.create(&format!("{number}"), bytes(600, 1)).unwrap();
    }
    fixture.tree.create_checkpoint(b"one").unwrap();
    for number in 0..2_000 {
        fixture.remove(&format!("{number}")).unwrap();
    }
    fixture.collect();
    let is_link = |id: &BlockId| matches!(fixture.store.block(*id), Some(Block::Index { .. }));
    let links: Vec<BlockId> = of_checkpoint(&fixture).into_iter().filter(is_link).collect();
    assert!(links.len() > 1);
    fixture.store.lose(links[0]);
    fixture.tree.drop_checkpoint(b"one").unwrap();
    fixture.collect();
    assert_eq!(fixture.tree.statistics().backlog, 0);
    assert!(fixture.store.all().len() > 2, "they are unreachable");
    sweep(&fixture);
    fixture.collect();
    fixture.audit();
    assert_eq!(fixture.store.all().len(), 2);
}

#[test]
fn orphan_delayed_at_its_removal_is_removed_after_a_sweep() {
    let fixture = TreeFixture::of(1400, 1 << 20, 0);
    for number in 0..50 {
        fixture.create(&format!("{number}"), bytes(9_000, 1)).unwrap();
    }
    let inos: BTreeSet<u64> =
        (0..50).map(|number| fixture.stat(&format!("{number}")).unwrap().id.ino).collect();
    let of_files = |block: &Block| match block {
        Block::Head(items) => items.iter().all(|item| inos.contains(&item.key.ino.0)),
        _ => false,
    };
    fixture.store.hold_back(blocks(&fixture, of_files));
    let delayed: Vec<String> =
        (0..50).map(|n| format!("{n}")).filter(|path| fixture.stat(path) == Err(Errno::Io)).collect();
    assert!(!delayed.is_empty());
    for path in &delayed {
        fixture.remove(path).unwrap();
    }
    fixture.collect();
    fixture.store.hold_back([]);
    sweep(&fixture);
    fixture.collect();
    fixture.audit();
}
