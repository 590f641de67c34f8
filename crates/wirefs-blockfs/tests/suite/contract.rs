//! The block tree behaves as the reference model.

use std::sync::Arc;
use wirefs_blockfs::{BlockFs, BlockFsOptions, DiskStore};
use wirefs_blocks::store::{BlockStore, MemoryStore};
use wirefs_model::{run_op, run_touches};
use wirefs_op::message::version::BootId;

/// The payload of an echo over Ethernet, and that of a disk store. In bytes.
const PAYLOADS: [usize; 2] = [1400, 16 * 1024];

fn tree(store: Arc<dyn BlockStore>, ram_bytes: usize) -> BlockFs {
    BlockFs::open(store, BlockFsOptions { ram_bytes, ..BlockFsOptions::new(BootId(1)) }).unwrap()
}

fn in_memory(payload_bytes: usize) -> Arc<dyn BlockStore> {
    Arc::new(MemoryStore::new(payload_bytes, 1 << 20))
}

/// Returns the seeds of a comparison; `WIREFS_SEEDS` sets their number.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    0..std::env::var("WIREFS_SEEDS").ok().map_or(usual, |count| count.parse().unwrap())
}

#[test]
fn a_block_tree_in_memory_answers_as_the_model_does() {
    for payload_bytes in PAYLOADS {
        for seed in seeds(3) {
            let tree = tree(in_memory(payload_bytes), 1 << 20);
            if let Err(mismatch) = run_op(seed, 1000, &tree) {
                panic!("blocks of {payload_bytes}: {mismatch}");
            }
        }
    }
}

#[test]
fn block_tree_without_a_cache_answers_as_the_model_does() {
    for seed in seeds(2) {
        if let Err(mismatch) = run_op(100 + seed, 500, &tree(in_memory(1400), 0)) {
            panic!("{mismatch}");
        }
    }
}

#[test]
fn block_tree_announces_all_changes() {
    for seed in seeds(4) {
        if let Err(mismatch) = run_touches(seed, 800, &tree(in_memory(1400), 1 << 20)) {
            panic!("{mismatch}");
        }
    }
}

#[test]
fn a_block_tree_on_a_disk_answers_as_the_model_does() {
    for seed in seeds(2) {
        let dir = std::env::temp_dir().join(format!("wirefs-contract-{}-{seed}", std::process::id()));
        let answered = run_op(200 + seed, 1000, &tree(Arc::new(DiskStore::open(&dir).unwrap()), 1 << 20));
        std::fs::remove_dir_all(&dir).unwrap();
        if let Err(mismatch) = answered {
            panic!("{mismatch}");
        }
    }
}
