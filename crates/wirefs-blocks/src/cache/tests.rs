use super::*;
use crate::block::Item;
use crate::id::WriterId;
use crate::key::{Ino, Key};
use bytes::Bytes;

fn id(counter: u64) -> BlockId {
    BlockId::new(counter, WriterId(0)).unwrap()
}

fn link() -> Arc<Block> {
    let child = Child { key: Key::MIN, id: id(1) };
    Arc::new(Block::Index { level: 1, children: vec![child; 1024 / size_of::<Child>() - 1] })
}

fn head() -> Arc<Block> {
    let item = Item { key: Key::head(Ino(1)), value: Bytes::from(vec![0; 960]) };
    Arc::new(Block::Head(vec![item]))
}

fn contents() -> Arc<Block> {
    Arc::new(Block::Contents { key: Key::MIN, data: Bytes::from(vec![0; 960]) })
}

/// Returns the cached blocks among 1 to `count`; does not count as a use.
fn cached(cache: &Cache, count: u64) -> Vec<u64> {
    (1..=count).filter(|counter| cache.state().blocks.contains_key(&id(*counter))).collect()
}

#[test]
fn contents_are_evicted_before_heads_and_heads_before_index_blocks() {
    let cache = Cache::new(3 * 1024);
    cache.put(id(1), link());
    cache.put(id(2), contents());
    cache.put(id(3), head());
    cache.put(id(4), head());
    assert_eq!(cached(&cache, 4), [1, 3, 4]);
    cache.put(id(5), link());
    cache.put(id(6), link());
    assert_eq!(cached(&cache, 6), [1, 5, 6]);
    assert!(cache.bytes() > 2 * 1024);
}

#[test]
fn prefetched_blocks_are_evicted_first_until_they_are_used() {
    let cache = Cache::new(3 * 1024);
    cache.put(id(1), contents());
    cache.put_prefetched(id(2), head());
    cache.put_prefetched(id(3), head());
    assert!(cache.get(id(2)).is_some());
    cache.put(id(4), contents());
    assert_eq!(cached(&cache, 4), [1, 2, 4]);
    cache.put_prefetched(id(5), head());
    assert_eq!(cached(&cache, 5), [1, 2, 4]);
}

#[test]
fn least_recently_used_block_of_a_class_is_evicted_first() {
    let cache = Cache::new(2 * 1024);
    cache.put(id(1), head());
    cache.put(id(2), head());
    assert!(cache.get(id(1)).is_some());
    cache.put(id(3), head());
    assert_eq!(cached(&cache, 3), [1, 3]);
}

#[test]
fn zero_budget_caches_nothing() {
    let cache = Cache::new(0);
    cache.put(id(1), head());
    assert_eq!((cache.get(id(1)), cache.bytes()), (None, 0));
}

#[test]
fn removed_blocks_use_no_memory() {
    let cache = Cache::new(2 * 1024);
    cache.put(id(1), head());
    cache.put(id(1), head());
    assert_eq!(cache.bytes(), 1024);
    cache.evict(&[id(1), id(9)]);
    assert_eq!((cache.bytes(), cache.state().order.len()), (0, 0));
}
