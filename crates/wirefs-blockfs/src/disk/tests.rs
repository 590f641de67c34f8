use super::*;
use crate::{BlockFs, BlockFsOptions};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use wirefs_blocks::id::NodeId;
use wirefs_op::message::version::BootId;

/// A directory that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Scratch(std::env::temp_dir().join(format!("wirefs-disk-{}-{number}", std::process::id())))
    }

    fn segments(&self) -> Vec<PathBuf> {
        let names = std::fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path());
        let mut paths: Vec<PathBuf> = names.filter(|path| path.extension().is_some()).collect();
        paths.sort();
        paths
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _kept = std::fs::remove_dir_all(&self.0);
    }
}

fn id(counter: u64) -> BlockId {
    BlockId::new(counter, NodeId(3)).unwrap()
}

fn block(number: u64) -> Bytes {
    Bytes::from(vec![number as u8; 100 + (number % 900) as usize])
}

fn read(store: &DiskStore, id: BlockId) -> Option<Bytes> {
    let mut found = None;
    store.retrieve(&Wanted::of([id]), &mut |_, bytes| found = bytes.ok());
    found
}

/// All that a store holds.
fn contents(store: &DiskStore) -> (Option<BlockId>, BTreeMap<BlockId, Bytes>) {
    let ids = store.registered(None, usize::MAX).into_iter();
    (store.root().unwrap(), ids.map(|id| (id, read(store, id).unwrap())).collect())
}

#[test]
fn the_checksum_is_the_known_one() {
    assert_eq!(sum::sum(&[b"1234", b"56789"]), 0xe306_9283);
}

#[test]
fn what_was_registered_is_there_when_it_is_opened_again() {
    let scratch = Scratch::new();
    let store = DiskStore::open(&scratch.0).unwrap();
    assert_eq!(contents(&store), (None, BTreeMap::new()));
    store.register(&[(id(1), block(1)), (id(2), block(2)), (id(3), Bytes::new())]).unwrap();
    store.switch_root(id(2)).unwrap();
    store.deregister(&[id(1), id(9)]);
    assert!(store.register(&[(id(2), block(2))]).is_err());
    let before = contents(&store);
    assert_eq!(before.1.len(), 2);
    assert!(matches!(DiskStore::open(&scratch.0), Err(DiskFault::InUse { .. })));
    drop(store);
    assert_eq!(contents(&DiskStore::open(&scratch.0).unwrap()), before);
}

#[test]
fn a_log_that_is_torn_at_any_byte_is_as_it_was_at_some_time() {
    let scratch = Scratch::new();
    let store = DiskStore::open(&scratch.0).unwrap();
    let path = scratch.segments().remove(0);
    // How it was, by the length of the log.
    let mut states = vec![(0, (None, BTreeMap::new()))];
    let mut note = |store: &DiskStore| {
        states.push((std::fs::metadata(&path).unwrap().len(), contents(store)));
    };
    note(&store);
    for number in 1..12 {
        store.register(&[(id(number), block(number * 7))]).unwrap();
        note(&store);
        store.switch_root(id(number)).unwrap();
        note(&store);
        if number > 3 {
            store.deregister(&[id(number - 3)]);
            note(&store);
        }
    }
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    let reopened = || {
        let opened = DiskStore::open(&scratch.0).map(|store| contents(&store));
        // A new segment, where none was left.
        for other in scratch.segments().into_iter().filter(|other| *other != path) {
            std::fs::remove_file(other).unwrap();
        }
        opened
    };
    for cut in (0..whole.len()).step_by(13) {
        let expected = &states.iter().rev().find(|(len, _)| *len <= cut as u64).unwrap().1;
        std::fs::write(&path, &whole[..cut]).unwrap();
        assert_eq!(&reopened().unwrap(), expected, "cut at {cut}");
        // What comes behind the cut is garbage, not less.
        let mut torn = whole.clone();
        torn[cut] ^= 0x55;
        std::fs::write(&path, torn).unwrap();
        match reopened() {
            Ok(found) => assert_eq!(&found, expected, "damaged at {cut}"),
            // The first record is on the disk before there are others.
            Err(fault) => assert!(cut < 29 && matches!(fault, DiskFault::Corrupt { .. }), "{cut}: {fault}"),
        }
    }
}

#[test]
fn a_log_stays_small_while_blocks_come_and_go() {
    const SEGMENT: u64 = 16 * 1024;
    let scratch = Scratch::new();
    let mut store = DiskStore::open_with(&scratch.0, SEGMENT).unwrap();
    let kept: Vec<u64> = (1..40).collect();
    store.register(&kept.iter().map(|number| (id(*number), block(*number))).collect::<Vec<_>>()).unwrap();
    store.switch_root(id(1)).unwrap();
    for number in 100..2000 {
        store.register(&[(id(number), block(number))]).unwrap();
        store.deregister(&[id(number)]);
        if number % 500 == 0 {
            drop(store);
            store = DiskStore::open_with(&scratch.0, SEGMENT).unwrap();
        }
    }
    let (root, blocks) = contents(&store);
    assert_eq!(root, Some(id(1)));
    assert_eq!(blocks, kept.iter().map(|number| (id(*number), block(*number))).collect());
    let used: u64 = scratch.segments().iter().map(|path| std::fs::metadata(path).unwrap().len()).sum();
    let live: u64 = blocks.values().map(|bytes| bytes.len() as u64 + 21).sum();
    assert!(used <= 2 * live + 6 * SEGMENT, "{used} bytes for {live}");
    drop(store);
    assert_eq!(contents(&DiskStore::open_with(&scratch.0, SEGMENT).unwrap()), (root, blocks));
}

#[test]
fn a_damaged_block_is_lost_and_nothing_beside_it() {
    let scratch = Scratch::new();
    let store = DiskStore::open_with(&scratch.0, 4096).unwrap();
    for number in 1..20 {
        store.register(&[(id(number), block(number * 50))]).unwrap();
    }
    let first = scratch.segments().remove(0);
    drop(store);
    let mut bytes = std::fs::read(&first).unwrap();
    let at = bytes.windows(100).position(|window| window == [100; 100]).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&first, bytes).unwrap();
    let store = DiskStore::open_with(&scratch.0, 4096).unwrap();
    for number in 1..20 {
        let expected = (number != 2).then(|| block(number * 50));
        assert_eq!(read(&store, id(number)), expected, "{number}");
    }
}

#[test]
fn what_is_no_store_is_not_opened_and_stays() {
    let scratch = Scratch::new();
    std::fs::create_dir(&scratch.0).unwrap();
    for name in ["0000000001.log", "0000000002.log"] {
        std::fs::write(scratch.0.join(name), b"something else, of which there is no copy").unwrap();
    }
    assert!(matches!(DiskStore::open(&scratch.0), Err(DiskFault::Corrupt { .. })));
    assert_eq!(scratch.segments().len(), 2);
}

#[test]
fn a_tree_on_a_disk_is_there_when_it_is_opened_again() {
    let scratch = Scratch::new();
    let open = || {
        let store = Arc::new(DiskStore::open(&scratch.0).unwrap());
        BlockFs::open(store, BlockFsOptions::new(BootId(1))).unwrap()
    };
    open().tree().create_checkpoint(b"one").unwrap();
    let again = open();
    assert_eq!(again.tree().checkpoints().len(), 1);
    assert_eq!(again.tree().checkpoints()[0].name, b"one");
}
