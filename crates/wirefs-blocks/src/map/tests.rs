//! The map against `BTreeMap`, and its dropped blocks against reachability.

use super::*;
use crate::cache::Cache;
use crate::id::{IdAllocator, WriterId};
use crate::key::{Ino, Part};
use crate::map::rebuild::Rebuilt;
use crate::store::Lost;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const BLOCK_BYTES: usize = 1200;

type Model = BTreeMap<Key, Bytes>;
type Edits = BTreeMap<Key, Option<Bytes>>;

/// Blocks, and the id allocator.
struct TreeFixture {
    blocks: BTreeMap<BlockId, Bytes>,
    ids: IdAllocator,
    waits: usize,
}

impl TreeFixture {
    fn new() -> TreeFixture {
        TreeFixture { blocks: BTreeMap::new(), ids: IdAllocator::new(WriterId(0)), waits: 0 }
    }

    /// Runs an operation with an empty cache.
    fn run<T>(&mut self, root: Option<BlockId>, op: impl Fn(Map<'_>) -> Result<T, Halt>) -> Result<T, Halt> {
        let cache = Cache::new(0);
        let block_set = BlockSet::new(&cache);
        loop {
            match op(Map { block_set: &block_set, root }) {
                Err(Halt::Need(wanted)) => {
                    self.waits += 1;
                    for id in wanted.ids {
                        block_set.supply(id, self.blocks.get(&id).cloned().ok_or(Lost));
                    }
                }
                outcome => return outcome,
            }
        }
    }

    fn rebuild(&mut self, root: Option<BlockId>, edits: &Edits) -> Rebuilt {
        let before = self.ids;
        let outcome = self.run(root, |map| {
            let mut ids = before;
            rebuild(map, edits, &mut ids, BLOCK_BYTES).map(|rebuilt| (rebuilt, ids))
        });
        let (rebuilt, ids) = outcome.unwrap();
        self.ids = ids;
        for (id, block) in &rebuilt.created {
            let bytes = block.encode();
            assert!(bytes.len() <= BLOCK_BYTES, "{} bytes", bytes.len());
            assert_eq!(self.blocks.insert(*id, bytes), None);
        }
        rebuilt
    }

    /// Returns all blocks that are reachable from a root.
    fn reached(&mut self, root: Option<BlockId>) -> BTreeMap<BlockId, Dropped> {
        let mut reached = BTreeMap::new();
        let mut waiting: Vec<(BlockId, Option<u8>)> = root.into_iter().map(|id| (id, None)).collect();
        while let Some((id, level)) = waiting.pop() {
            let (_, below) = self.run(root, |map| map.describe(id, level)).unwrap();
            assert!(below.iter().all(|child| child.id < id), "a block is newer than its children");
            waiting.extend(below.iter().map(|child| (child.id, child.level)));
            reached.extend(below.into_iter().map(|child| (child.id, child)));
        }
        reached
    }

    fn all(&mut self, root: Option<BlockId>) -> Model {
        let last = Key::new(Ino(u64::MAX), Part::DestroyedTree, u64::MAX);
        let items = self.run(root, |map| map.scan(Key::MIN..=last, usize::MAX)).unwrap();
        items.into_iter().map(|item| (item.key, item.value)).collect()
    }
}

fn key(number: u64) -> Key {
    Key::new(Ino(number / 7), Part::Entry, number % 7 * 1000)
}

fn apply(model: &mut Model, edits: &Edits) {
    for (key, value) in edits {
        match value {
            Some(value) => model.insert(*key, value.clone()),
            None => model.remove(key),
        };
    }
}

fn edits() -> impl Strategy<Value = Vec<Edits>> {
    let value = prop::option::weighted(
        0.6,
        (0_usize..300, any::<u8>()).prop_map(|(len, byte)| Bytes::from(vec![byte; len])),
    );
    let batch = (0_u64..600, 1_u64..60, prop::collection::vec((0_u64..60, value), 1..40)).prop_map(
        |(from, spread, edits)| {
            edits.into_iter().map(|(offset, value)| (key(from + offset * spread), value)).collect()
        },
    );
    prop::collection::vec(batch, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn map_behaves_like_a_btree_map(batches in edits()) {
        let mut fixture = TreeFixture::new();
        let mut model = Model::new();
        let mut root = None;
        for edits in batches {
            apply(&mut model, &edits);
            let before = fixture.reached(root);
            let rebuilt = fixture.rebuild(root, &edits);
            let old = root;
            root = rebuilt.root;
            prop_assert_eq!(&fixture.all(root), &model);
            // The dropped blocks are exactly those reachable from the old root and not from the new one; no
            // new block is lost.
            let after = fixture.reached(root);
            let dropped: BTreeSet<BlockId> = rebuilt.dropped.iter().map(|dropped| dropped.id).collect();
            let gone = |all: &BTreeMap<BlockId, Dropped>, root: Option<BlockId>| {
                all.keys().copied().chain(root).filter(|id| !after.contains_key(id) && rebuilt.root != Some(*id)).collect()
            };
            let expected: BTreeSet<BlockId> = gone(&before, old);
            prop_assert_eq!(&dropped, &expected);
            for (id, _) in &rebuilt.created {
                prop_assert!(after.contains_key(id) || rebuilt.root == Some(*id), "{id} is unreachable");
            }
            // The key of a block suffices to find its position and whether it is reachable.
            for block in rebuilt.dropped.iter().chain(after.values()) {
                let reaches = fixture.run(root, |map| map.reaches(block)).unwrap();
                prop_assert_eq!(reaches, after.contains_key(&block.id));
                let reached_before = fixture.run(old, |map| map.reaches(block)).unwrap();
                prop_assert_eq!(reached_before, before.contains_key(&block.id) || old == Some(block.id));
            }
        }
    }

    #[test]
    fn a_key_and_a_range_are_found(batches in edits(), from in 0_u64..4000, len in 0_u64..2000, limit in 1_usize..50) {
        let mut fixture = TreeFixture::new();
        let mut model = Model::new();
        let mut root = None;
        for edits in batches {
            apply(&mut model, &edits);
            root = fixture.rebuild(root, &edits).root;
        }
        prop_assert_eq!(fixture.run(root, |map| map.get(key(from))), Ok(model.get(&key(from)).cloned()));
        let items = fixture.run(root, |map| map.scan(key(from)..=key(from + len), limit)).unwrap();
        let expected: Vec<Item> = model
            .range(key(from)..=key(from + len))
            .take(limit)
            .map(|(key, value)| Item { key: *key, value: value.clone() })
            .collect();
        prop_assert_eq!(items, expected);
    }
}

#[test]
fn appending_fills_blocks() {
    let mut fixture = TreeFixture::new();
    let mut root = None;
    for number in 0..2000 {
        let edits = Edits::from([(key(number), Some(Bytes::from_static(b"twenty bytes or more")))]);
        let rebuilt = fixture.rebuild(root, &edits);
        for dropped in &rebuilt.dropped {
            fixture.blocks.remove(&dropped.id);
        }
        root = rebuilt.root;
    }
    let bytes: usize = fixture.blocks.values().map(Bytes::len).sum();
    let filled = bytes as f64 / (fixture.blocks.len() * BLOCK_BYTES) as f64;
    assert!(filled > 0.9, "{filled}");
}

#[test]
fn emptied_map_has_no_root_and_no_blocks() {
    let mut fixture = TreeFixture::new();
    let fill: Edits = (0..500).map(|number| (key(number), Some(Bytes::from(vec![1; 100])))).collect();
    let mut root = fixture.rebuild(None, &fill).root;
    for number in 0..500 {
        let rebuilt = fixture.rebuild(root, &Edits::from([(key(number * 37 % 500), None)]));
        for dropped in &rebuilt.dropped {
            assert!(fixture.blocks.remove(&dropped.id).is_some());
        }
        root = rebuilt.root;
    }
    assert_eq!((root, fixture.blocks.len()), (None, 0));
}

#[test]
fn shrinking_map_drops_its_blocks() {
    let mut fixture = TreeFixture::new();
    let fill: Edits = (0..2000).map(|number| (key(number), Some(Bytes::from(vec![1; 100])))).collect();
    let mut root = fixture.rebuild(None, &fill).root;
    // One in twenty remains.
    for number in (0..2000).filter(|number| number % 20 != 0) {
        let rebuilt = fixture.rebuild(root, &Edits::from([(key(number), None)]));
        for dropped in &rebuilt.dropped {
            fixture.blocks.remove(&dropped.id);
        }
        root = rebuilt.root;
    }
    let bytes: usize = fixture.blocks.values().map(Bytes::len).sum();
    assert!(
        fixture.blocks.len() < 5 * bytes.div_ceil(BLOCK_BYTES),
        "{} blocks for {bytes} bytes",
        fixture.blocks.len()
    );
}

#[test]
fn adjacent_blocks_are_retrieved_together() {
    let mut fixture = TreeFixture::new();
    let fill: Edits = (0..3000).map(|number| (key(number), Some(Bytes::from(vec![1; 100])))).collect();
    let root = fixture.rebuild(None, &fill).root;
    let levels = {
        fixture.waits = 0;
        fixture.run(root, |map| map.get(key(5))).unwrap();
        fixture.waits
    };
    fixture.waits = 0;
    let items = fixture.run(root, |map| map.scan(key(0)..=key(100), usize::MAX)).unwrap();
    assert_eq!((items.len(), fixture.waits), (101, levels));
    fixture.waits = 0;
    let edits: Edits = (0..10).map(|number| (key(number * 300), None)).collect();
    fixture.rebuild(root, &edits);
    assert_eq!(fixture.waits, levels);
}

#[test]
fn lost_block_is_reported_and_other_keys_are_found() {
    let mut fixture = TreeFixture::new();
    let fill: Edits = (0..500).map(|number| (key(number), Some(Bytes::from(vec![1; 100])))).collect();
    let root = fixture.rebuild(None, &fill).root;
    let reached = fixture.reached(root);
    let lost = reached.values().find(|block| block.level == Some(0)).unwrap().id;
    fixture.blocks.remove(&lost);
    let found: Vec<bool> =
        (0..500).map(|number| fixture.run(root, |map| map.get(key(number))).is_ok()).collect();
    let missing = found.iter().filter(|found| !**found).count();
    assert!((1..12).contains(&missing), "{missing} items are missing");
}

#[test]
fn cycle_of_blocks_is_rejected() {
    let mut fixture = TreeFixture::new();
    let id = fixture.ids.allocate().unwrap();
    let child = Child { key: Key::MIN, id };
    fixture.blocks.insert(id, Block::Index { level: 3, children: vec![child] }.encode());
    assert_eq!(fixture.run(Some(id), |map| map.get(key(1))), Err(Halt::Failed(Errno::Io)));
}
