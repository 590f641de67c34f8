use super::*;
use crate::{BlockFs, BlockFsOptions};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use wirefs_blocks::id::WriterId;
use wirefs_op::message::version::BootId;

/// A directory that is removed after the test.
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

/// A small tmpfs that is unmounted after the test.
struct SmallDisk(Scratch);

impl SmallDisk {
    fn new(bytes: u64) -> SmallDisk {
        let scratch = Scratch::new();
        std::fs::create_dir(&scratch.0).unwrap();
        let options = std::ffi::CString::new(format!("size={bytes}")).unwrap();
        let mounted = rustix::mount::mount(
            "wirefs-test",
            &scratch.0,
            "tmpfs",
            rustix::mount::MountFlags::empty(),
            options.as_c_str(),
        );
        mounted.expect("this test mounts a file system: run it as root");
        SmallDisk(scratch)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _gone = rustix::mount::unmount(&self.0.0, rustix::mount::UnmountFlags::DETACH);
    }
}

fn id(counter: u64) -> BlockId {
    BlockId::new(counter, WriterId(3)).unwrap()
}

fn block(number: u64) -> Bytes {
    Bytes::from(vec![number as u8; 100 + (number % 900) as usize])
}

fn read(store: &DiskStore, id: BlockId) -> Option<Bytes> {
    let mut found = None;
    store.retrieve(&Wanted::of([id]), &mut |_, bytes| found = bytes.ok());
    found
}

/// Returns the root and all blocks of a store.
fn contents(store: &DiskStore) -> (Option<BlockId>, BTreeMap<BlockId, Bytes>) {
    let ids = store.registered(None, usize::MAX).into_iter();
    (store.root().unwrap(), ids.map(|id| (id, read(store, id).unwrap())).collect())
}

#[test]
fn registered_blocks_survive_reopening() {
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
fn torn_log_opens_in_an_earlier_state() {
    let scratch = Scratch::new();
    let store = DiskStore::open(&scratch.0).unwrap();
    let path = scratch.segments().remove(0);
    // Earlier states by the length of the log.
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
        // A new segment, if nothing of the log was left.
        for other in scratch.segments().into_iter().filter(|other| *other != path) {
            std::fs::remove_file(other).unwrap();
        }
        opened
    };
    for cut in (0..whole.len()).step_by(13) {
        let expected = &states.iter().rev().find(|(len, _)| *len <= cut as u64).unwrap().1;
        std::fs::write(&path, &whole[..cut]).unwrap();
        assert_eq!(&reopened().unwrap(), expected, "cut at {cut}");
        // The bytes after the cut are garbage.
        let mut torn = whole.clone();
        torn[cut] ^= 0x55;
        std::fs::write(&path, torn).unwrap();
        match reopened() {
            Ok(found) => assert_eq!(&found, expected, "damaged at {cut}"),
            // The first record is synced before others are written.
            Err(fault) => assert!(cut < 29 && matches!(fault, DiskFault::Corrupt { .. }), "{cut}: {fault}"),
        }
    }
}

#[test]
fn log_stays_small_under_churn() {
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
fn damaged_block_is_lost_and_no_other() {
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

/// Flips a byte of a file that may be open.
fn damage(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 0x55;
    std::fs::write(path, bytes).unwrap();
}

const SEGMENT: u64 = 16 * 1024;
const BEGIN: usize = 29;

/// Registers and deregisters blocks until the oldest segments are cleaned.
fn churn(store: &DiskStore) {
    for number in 1000..1300 {
        store.register(&[(id(number), block(number))]).unwrap();
        store.deregister(&[id(number)]);
    }
}

fn with_forty_blocks(scratch: &Scratch) -> DiskStore {
    let store = DiskStore::open_with(&scratch.0, SEGMENT).unwrap();
    for number in 1..40 {
        store.register(&[(id(number), block(number * 20))]).unwrap();
    }
    store.switch_root(id(1)).unwrap();
    assert!(scratch.segments().len() > 1);
    store
}

#[test]
fn cleaning_preserves_blocks_behind_a_damaged_record() {
    let scratch = Scratch::new();
    let store = with_forty_blocks(&scratch);
    let first = scratch.segments().remove(0);
    damage(&first, BEGIN + 2);
    churn(&store);
    assert!(!first.exists());
    for number in 1..40 {
        assert_eq!(read(&store, id(number)), Some(block(number * 20)), "{number}");
    }
}

#[test]
fn unreadable_segment_is_not_removed() {
    let scratch = Scratch::new();
    let store = with_forty_blocks(&scratch);
    let first = scratch.segments().remove(0);
    let whole = std::fs::read(&first).unwrap();
    std::fs::write(&first, &whole[..whole.len() / 2]).unwrap();
    churn(&store);
    assert!(first.exists());
    std::fs::write(&first, &whole).unwrap();
    churn_again(&store);
    assert!(!first.exists());
    for number in 1..40 {
        assert_eq!(read(&store, id(number)), Some(block(number * 20)), "{number}");
    }
}

fn churn_again(store: &DiskStore) {
    store.register(&[(id(2000), block(1))]).unwrap();
    store.deregister(&[id(2000)]);
}

#[test]
fn synced_data_never_counts_as_a_torn_end() {
    let scratch = Scratch::new();
    let store = DiskStore::open(&scratch.0).unwrap();
    let path = scratch.segments().remove(0);
    for number in 1..6 {
        store.register(&[(id(number), block(number))]).unwrap();
        store.switch_root(id(number)).unwrap();
    }
    store.sync().unwrap();
    let synced = std::fs::metadata(&path).unwrap().len() as usize;
    store.register(&[(id(6), block(6))]).unwrap();
    store.switch_root(id(6)).unwrap();
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(7) {
        std::fs::write(&path, &whole).unwrap();
        damage(&path, at);
        match DiskStore::open(&scratch.0) {
            Ok(store) => assert!(at >= synced && store.root().unwrap() == Some(id(5)), "{at} of {synced}"),
            Err(fault) => {
                assert!(at < synced && matches!(fault, DiskFault::Corrupt { .. }), "{at}: {fault}");
                assert_eq!(
                    std::fs::metadata(&path).unwrap().len(),
                    whole.len() as u64,
                    "a damaged log was truncated"
                );
            }
        }
    }
}

#[test]
fn damage_is_reported_at_any_distance_from_the_next_root() {
    let scratch = Scratch::new();
    let store = DiskStore::open(&scratch.0).unwrap();
    let path = scratch.segments().remove(0);
    // The root record crosses the border of the scan window.
    for number in 1..=63 {
        store.register(&[(id(number), Bytes::from(vec![number as u8; 16 * 1024]))]).unwrap();
    }
    store.register(&[(id(64), Bytes::from(vec![7; (1 << 20) - 10 - 63 * (16 * 1024 + 21) - 21]))]).unwrap();
    store.sync().unwrap();
    store.switch_root(id(1)).unwrap();
    drop(store);
    assert_eq!(std::fs::metadata(&path).unwrap().len() as usize, BEGIN + (1 << 20) - 10 + BEGIN);
    damage(&path, BEGIN);
    assert!(matches!(DiskStore::open(&scratch.0), Err(DiskFault::Corrupt { .. })));
}

#[test]
fn end_of_a_cleanly_closed_store_is_not_truncated() {
    let scratch = Scratch::new();
    let store = DiskStore::open(&scratch.0).unwrap();
    store.register(&[(id(1), block(1))]).unwrap();
    store.switch_root(id(1)).unwrap();
    store.sync().unwrap();
    let path = scratch.segments().remove(0);
    let synced = std::fs::metadata(&path).unwrap().len() as usize;
    drop(store);
    assert_eq!(DiskStore::open(&scratch.0).unwrap().root().unwrap(), Some(id(1)));
    damage(&path, synced - 1);
    assert!(matches!(DiskStore::open(&scratch.0), Err(DiskFault::Corrupt { .. })));
}

#[test]
fn damaged_inner_segment_is_not_opened() {
    let scratch = Scratch::new();
    drop(with_forty_blocks(&scratch));
    let first = scratch.segments().remove(0);
    let whole = std::fs::read(&first).unwrap();
    damage(&first, BEGIN + 2);
    assert!(matches!(DiskStore::open_with(&scratch.0, SEGMENT), Err(DiskFault::Corrupt { .. })));
    std::fs::write(&first, &whole[..whole.len() - 1]).unwrap();
    assert!(matches!(DiskStore::open_with(&scratch.0, SEGMENT), Err(DiskFault::Corrupt { .. })));
    std::fs::write(&first, &whole).unwrap();
    assert_eq!(contents(&DiskStore::open_with(&scratch.0, SEGMENT).unwrap()).1.len(), 39);
}

#[test]
fn foreign_files_are_not_opened_and_stay_unchanged() {
    let scratch = Scratch::new();
    std::fs::create_dir(&scratch.0).unwrap();
    for name in ["0000000001.log", "0000000002.log"] {
        std::fs::write(scratch.0.join(name), b"something else, of which there is no copy").unwrap();
    }
    assert!(matches!(DiskStore::open(&scratch.0), Err(DiskFault::Corrupt { .. })));
    assert_eq!(scratch.segments().len(), 2);
}

#[test]
fn tree_on_a_disk_survives_reopening() {
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

/// Registers blocks as a growing tree does, until only the reserve is left.
fn fill(store: &DiskStore, from: u64) -> u64 {
    let mut next = from;
    while store.room().blocks_available() > 0 {
        store.register(&[(id(next), filled(next))]).unwrap();
        next += 1;
    }
    next
}

/// A block of the maximum size.
fn filled(number: u64) -> Bytes {
    Bytes::from(vec![number as u8; DISK_PAYLOAD_BYTES])
}

#[test]
fn a_full_store_can_be_emptied_and_filled_again() {
    let disk = SmallDisk::new(4 << 20);
    let dir = disk.0.0.join("store");
    let segment = 256 * 1024;
    let mut store = DiskStore::open_with(&dir, segment).unwrap();
    let mut begin = 1;
    for round in 0..3 {
        let end = fill(&store, begin);
        assert!(end - begin > 100, "round {round}: only {} blocks fit", end - begin);
        // As in a removal: a small write, then the deregistration of it and of an old block.
        let mut copy = end;
        for number in begin..end {
            store.register(&[(id(copy), filled(copy)), (id(copy + 1), filled(copy + 1))]).unwrap();
            store.switch_root(id(copy)).unwrap();
            let before = (copy > end).then(|| [id(copy - 2), id(copy - 1)]);
            store.deregister(before.as_ref().map_or(&[], |ids| &ids[..]));
            store.deregister(&[id(number)]);
            copy += 2;
        }
        let expected = BTreeMap::from([(id(copy - 2), filled(copy - 2)), (id(copy - 1), filled(copy - 1))]);
        assert_eq!(contents(&store), (Some(id(copy - 2)), expected.clone()), "round {round}");
        drop(store);
        store = DiskStore::open_with(&dir, segment).unwrap();
        assert_eq!(contents(&store), (Some(id(copy - 2)), expected), "round {round}, opened again");
        store.deregister(&[id(copy - 2), id(copy - 1)]);
        begin = copy;
    }
}

#[test]
fn store_can_be_emptied_on_a_disk_filled_by_other_programs() {
    let disk = SmallDisk::new(4 << 20);
    let store = DiskStore::open_with(&disk.0.0.join("store"), 256 * 1024).unwrap();
    for number in 1..100 {
        store.register(&[(id(number), filled(number))]).unwrap();
    }
    let mut other = std::fs::File::create(disk.0.0.join("other")).unwrap();
    while std::io::Write::write(&mut other, &[1; 4096]).is_ok() {}
    assert_eq!(store.room().blocks_available(), 0);
    for number in 1..99 {
        store.register(&[(id(1000 + number), filled(number))]).unwrap();
        store.deregister(&[id(number), id(1000 + number)]);
    }
    assert_eq!(contents(&store).1, BTreeMap::from([(id(99), filled(99))]));
    assert!(store.room().blocks_free > 30, "{:?}", store.room());
}

#[test]
fn cleaning_out_of_order_restores_no_freed_block() {
    let disk = SmallDisk::new(8 << 20);
    let dir = disk.0.0.join("store");
    let store = DiskStore::open_with(&dir, SEGMENT * 16).unwrap();
    let mut live = BTreeMap::new();
    let mut next = 1;
    for step in 0..3000_u64 {
        if store.room().blocks_available() > 0 {
            store.register(&[(id(next), filled(next))]).unwrap();
            live.insert(id(next), filled(next));
            next += 1;
        }
        // Old blocks live long; most new ones are freed soon.
        let at = if step % 5 == 0 { step * 7 % 40 } else { live.len() as u64 * 3 / 4 + step % 7 };
        if live.len() > 200 || store.room().blocks_available() == 0 {
            let gone = live.keys().nth(at as usize % live.len()).copied().unwrap();
            live.remove(&gone);
            store.deregister(&[gone]);
        }
    }
    assert_eq!(contents(&store).1, live);
    drop(store);
    assert_eq!(contents(&DiskStore::open_with(&dir, SEGMENT * 16).unwrap()).1, live);
}
