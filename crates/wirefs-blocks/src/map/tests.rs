//! The map against a plain sorted map, and the blocks that it drops against those that it reaches.

use super::*;
use crate::cache::Cache;
use crate::id::{Ids, NodeId};
use crate::key::{Ino, Part};
use crate::map::rebuild::Rebuilt;
use crate::store::Lost;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const BLOCK_BYTES: usize = 1200;

type Model = BTreeMap<Key, Bytes>;
type Edits = BTreeMap<Key, Option<Bytes>>;

/// Blocks and the ids of the next ones.
struct World {
    blocks: BTreeMap<BlockId, Bytes>,
    ids: Ids,
    waits: usize,
}

impl World {
    fn new() -> World {
        World { blocks: BTreeMap::new(), ids: Ids::new(NodeId(0)), waits: 0 }
    }

    /// Runs an operation that begins with an empty cache.
    fn run<T>(&mut self, root: Option<BlockId>, op: impl Fn(Map<'_>) -> Result<T, Halt>) -> Result<T, Halt> {
        let cache = Cache::new(0);
        let shelf = Shelf::new(&cache);
        loop {
            match op(Map { shelf: &shelf, root }) {
                Err(Halt::Need(wanted)) => {
                    self.waits += 1;
                    for id in wanted.ids {
                        shelf.supply(id, self.blocks.get(&id).cloned().ok_or(Lost));
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

    /// All blocks that a root reaches.
    fn reached(&mut self, root: Option<BlockId>) -> BTreeMap<BlockId, Dropped> {
        let mut reached = BTreeMap::new();
        let mut waiting: Vec<(BlockId, Option<u8>)> = root.into_iter().map(|id| (id, None)).collect();
        while let Some((id, level)) = waiting.pop() {
            let (_, below) = self.run(root, |map| map.describe(id, level)).unwrap();
            assert!(below.iter().all(|child| child.id < id), "a block is newer than what it names");
            waiting.extend(below.iter().map(|child| (child.id, child.level)));
            reached.extend(below.into_iter().map(|child| (child.id, child)));
        }
        reached
    }

    fn all(&mut self, root: Option<BlockId>) -> Model {
        let last = Key::new(Ino(u64::MAX), Part::Dying, u64::MAX);
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
    fn a_map_does_what_a_plain_one_does(batches in edits()) {
        let mut world = World::new();
        let mut model = Model::new();
        let mut root = None;
        for edits in batches {
            apply(&mut model, &edits);
            let before = world.reached(root);
            let rebuilt = world.rebuild(root, &edits);
            let old = root;
            root = rebuilt.root;
            prop_assert_eq!(&world.all(root), &model);
            // Exactly what the old root reached and the new one does not was dropped, and nothing that is new is lost.
            let after = world.reached(root);
            let dropped: BTreeSet<BlockId> = rebuilt.dropped.iter().map(|dropped| dropped.id).collect();
            let gone = |all: &BTreeMap<BlockId, Dropped>, root: Option<BlockId>| {
                all.keys().copied().chain(root).filter(|id| !after.contains_key(id) && rebuilt.root != Some(*id)).collect()
            };
            let expected: BTreeSet<BlockId> = gone(&before, old);
            prop_assert_eq!(&dropped, &expected);
            for (id, _) in &rebuilt.created {
                prop_assert!(after.contains_key(id) || rebuilt.root == Some(*id), "{id} is reached by nobody");
            }
            // Where a block is, and whether it is reached, is found by its key.
            for block in rebuilt.dropped.iter().chain(after.values()) {
                let reaches = world.run(root, |map| map.reaches(block)).unwrap();
                prop_assert_eq!(reaches, after.contains_key(&block.id));
                let reached_before = world.run(old, |map| map.reaches(block)).unwrap();
                prop_assert_eq!(reached_before, before.contains_key(&block.id) || old == Some(block.id));
            }
        }
    }

    #[test]
    fn a_key_and_a_range_are_found(batches in edits(), from in 0_u64..4000, len in 0_u64..2000, limit in 1_usize..50) {
        let mut world = World::new();
        let mut model = Model::new();
        let mut root = None;
        for edits in batches {
            apply(&mut model, &edits);
            root = world.rebuild(root, &edits).root;
        }
        prop_assert_eq!(world.run(root, |map| map.get(key(from))), Ok(model.get(&key(from)).cloned()));
        let items = world.run(root, |map| map.scan(key(from)..=key(from + len), limit)).unwrap();
        let expected: Vec<Item> = model
            .range(key(from)..=key(from + len))
            .take(limit)
            .map(|(key, value)| Item { key: *key, value: value.clone() })
            .collect();
        prop_assert_eq!(items, expected);
    }
}

#[test]
fn rows_that_grow_at_their_end_fill_their_blocks() {
    let mut world = World::new();
    let mut root = None;
    for number in 0..2000 {
        let edits = Edits::from([(key(number), Some(Bytes::from_static(b"twenty bytes or more")))]);
        let rebuilt = world.rebuild(root, &edits);
        for dropped in &rebuilt.dropped {
            world.blocks.remove(&dropped.id);
        }
        root = rebuilt.root;
    }
    let bytes: usize = world.blocks.values().map(Bytes::len).sum();
    let filled = bytes as f64 / (world.blocks.len() * BLOCK_BYTES) as f64;
    assert!(filled > 0.9, "{filled}");
}

#[test]
fn a_map_that_becomes_empty_has_no_root_and_no_blocks() {
    let mut world = World::new();
    let fill: Edits = (0..500).map(|number| (key(number), Some(Bytes::from(vec![1; 100])))).collect();
    let mut root = world.rebuild(None, &fill).root;
    for number in 0..500 {
        let rebuilt = world.rebuild(root, &Edits::from([(key(number * 37 % 500), None)]));
        for dropped in &rebuilt.dropped {
            assert!(world.blocks.remove(&dropped.id).is_some());
        }
        root = rebuilt.root;
    }
    assert_eq!((root, world.blocks.len()), (None, 0));
}

#[test]
fn a_map_that_shrinks_gives_up_its_blocks() {
    let mut world = World::new();
    let fill: Edits = (0..2000).map(|number| (key(number), Some(Bytes::from(vec![1; 100])))).collect();
    let mut root = world.rebuild(None, &fill).root;
    // One in twenty stays.
    for number in (0..2000).filter(|number| number % 20 != 0) {
        let rebuilt = world.rebuild(root, &Edits::from([(key(number), None)]));
        for dropped in &rebuilt.dropped {
            world.blocks.remove(&dropped.id);
        }
        root = rebuilt.root;
    }
    let bytes: usize = world.blocks.values().map(Bytes::len).sum();
    assert!(
        world.blocks.len() < 5 * bytes.div_ceil(BLOCK_BYTES),
        "{} blocks for {bytes} bytes",
        world.blocks.len()
    );
}

#[test]
fn blocks_beside_each_other_are_waited_for_together() {
    let mut world = World::new();
    let fill: Edits = (0..3000).map(|number| (key(number), Some(Bytes::from(vec![1; 100])))).collect();
    let root = world.rebuild(None, &fill).root;
    let levels = {
        world.waits = 0;
        world.run(root, |map| map.get(key(5))).unwrap();
        world.waits
    };
    world.waits = 0;
    let items = world.run(root, |map| map.scan(key(0)..=key(100), usize::MAX)).unwrap();
    assert_eq!((items.len(), world.waits), (101, levels));
    world.waits = 0;
    let edits: Edits = (0..10).map(|number| (key(number * 300), None)).collect();
    world.rebuild(root, &edits);
    assert_eq!(world.waits, levels);
}

#[test]
fn a_lost_block_is_told_and_others_are_found() {
    let mut world = World::new();
    let fill: Edits = (0..500).map(|number| (key(number), Some(Bytes::from(vec![1; 100])))).collect();
    let root = world.rebuild(None, &fill).root;
    let reached = world.reached(root);
    let lost = reached.values().find(|block| block.level == Some(0)).unwrap().id;
    world.blocks.remove(&lost);
    let found: Vec<bool> =
        (0..500).map(|number| world.run(root, |map| map.get(key(number))).is_ok()).collect();
    let missing = found.iter().filter(|found| !**found).count();
    assert!((1..12).contains(&missing), "{missing} items are missing");
}

#[test]
fn a_chain_of_blocks_that_leads_round_is_refused() {
    let mut world = World::new();
    let id = world.ids.issue().unwrap();
    let child = Child { key: Key::MIN, id };
    world.blocks.insert(id, Block::Link { level: 3, children: vec![child] }.encode());
    assert_eq!(world.run(Some(id), |map| map.get(key(1))), Err(Halt::Failed(Errno::Io)));
}
