//! The number of sequential retrievals in operations.

use super::fixture::{PAYLOAD_BYTES, TreeFixture, at, bytes};
use crate::block::Block;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use wirefs_op::SetStat;

const DIRS: usize = 150;
const FILES: usize = 20;
/// Memory for all index blocks of the tree and a few heads, in bytes. The tree itself has 2.4 MB.
const RAM_BYTES: usize = 150_000;

fn size(dir: usize, file: usize) -> usize {
    (dir * 37 + file * 101) % 1200
}

/// Directories of small files, created in an interleaved order as `tar` does.
fn filled() -> TreeFixture {
    let fixture = TreeFixture::of(PAYLOAD_BYTES, 1 << 20, 64 << 20);
    for dir in 0..DIRS {
        fixture.mkdir(&format!("d{dir}")).unwrap();
    }
    for file in 0..FILES {
        for dir in 0..DIRS {
            fixture.create(&format!("d{dir}/f{file}"), bytes(size(dir, file), 1)).unwrap();
        }
    }
    fixture
}

fn waits<R>(fixture: &TreeFixture, op: impl FnOnce(&TreeFixture) -> R) -> u64 {
    let before = fixture.tree.statistics().waits;
    op(fixture);
    fixture.tree.statistics().waits - before
}

fn read_one(fixture: &TreeFixture, number: usize) {
    let (dir, file) = (number * 6007 % DIRS, number * 7 % FILES);
    assert_eq!(fixture.read(&format!("d{dir}/f{file}")), Ok(bytes(size(dir, file), 1)));
}

/// Returns the maximum and the mean number of retrievals for reads of random small files.
fn reads(fixture: &TreeFixture) -> (u64, f64) {
    const READS: usize = 500;
    // Index blocks are cached after a few reads.
    for number in 0..100 {
        read_one(fixture, number * 13);
    }
    let counts: Vec<u64> =
        (0..READS).map(|number| waits(fixture, |fixture| read_one(fixture, number))).collect();
    let sum: u64 = counts.iter().sum();
    (counts.into_iter().max().unwrap_or_default(), sum as f64 / READS as f64)
}

#[test]
fn small_file_is_read_with_at_most_two_retrievals() {
    let fixture = filled();
    let links = fixture
        .store
        .all()
        .into_iter()
        .filter(|id| matches!(fixture.store.block(*id), Some(Block::Index { .. })));
    assert!(links.count() * PAYLOAD_BYTES < RAM_BYTES);
    // A store that delivers no hints.
    let fixture = fixture.reopened(RAM_BYTES);
    let (most, mean) = reads(&fixture);
    assert!(most <= 2 && mean <= 2.0, "{most} waits at most, {mean} in the mean");
    // A store that delivers all hints.
    fixture.store.takes_hints.store(true, Ordering::Relaxed);
    let fixture = fixture.reopened(RAM_BYTES);
    let (most, mean) = reads(&fixture);
    assert!(most <= 2 && mean <= 1.4, "{most} waits at most, {mean} in the mean");
}

#[test]
fn lookup_in_a_listed_directory_retrieves_nothing() {
    let fixture = filled().reopened(RAM_BYTES);
    for dir in [7, 70, 149] {
        fixture.list(&format!("d{dir}")).unwrap();
        for file in 0..FILES {
            let path = format!("d{dir}/f{file}");
            assert_eq!(waits(&fixture, |fixture| fixture.stat(&path).unwrap()), 0, "{path}");
        }
        assert_eq!(waits(&fixture, |fixture| fixture.list(&format!("d{dir}")).unwrap()), 0);
    }
}

#[test]
fn directory_is_listed_with_two_retrievals() {
    let fixture = filled().reopened(RAM_BYTES);
    reads(&fixture);
    for dir in [3, 33, 133] {
        // The names, then the heads of all files together.
        assert!(waits(&fixture, |fixture| fixture.list(&format!("d{dir}")).unwrap()) <= 2);
    }
}

#[test]
fn large_file_is_read_with_few_retrievals() {
    let fixture = TreeFixture::of(PAYLOAD_BYTES, 1 << 20, 1 << 20);
    let size = 4 << 20;
    fixture.create("f", bytes(10, 1)).unwrap();
    for offset in (0..size).step_by(128 * 1024) {
        fixture.write(at("f"), offset, bytes(128 * 1024, 1)).unwrap();
    }
    let fixture = fixture.reopened(RAM_BYTES);
    let waited = waits(&fixture, |fixture| fixture.read("f").unwrap());
    // The descent to the head; for each window its runs, then all contents.
    assert!(waited <= 3 + 4 * 4, "{waited} waits for {size} bytes");
}

#[test]
fn small_sequential_reads_request_blocks_ahead() {
    const SIZE: u64 = 2 << 20;
    const READ: u32 = 4096;
    let fixture = TreeFixture::of(PAYLOAD_BYTES, 1 << 20, 0);
    fixture.create("f", bytes(10, 1)).unwrap();
    for offset in (0..SIZE).step_by(128 * 1024) {
        fixture.write(at("f"), offset, bytes(128 * 1024, 1)).unwrap();
    }
    let first_requests = |fixture: &TreeFixture, read_ahead| {
        fixture.store.read_ahead.store(read_ahead, Ordering::Relaxed);
        fixture.store.requested.lock().unwrap().clear();
        fixture.store.first_requests.store(0, Ordering::Relaxed);
        (0..SIZE).step_by(READ as usize).for_each(|offset| {
            assert_eq!(fixture.read_at("f", offset, READ).unwrap().len(), READ as usize);
        });
        fixture.store.first_requests.load(Ordering::Relaxed)
    };
    let alone = first_requests(&fixture, 0);
    assert!(alone > SIZE / u64::from(READ), "{alone} requests for new blocks");
    let fixture = fixture.reopened(0);
    fixture.store.read_ahead.store(1 << 20, Ordering::Relaxed);
    let fixture = fixture.reopened(0);
    let ahead = first_requests(&fixture, 1 << 20);
    // The descent, the contents of the first read, and the runs that a step adds.
    assert!(ahead < 40, "{ahead} requests for new blocks");
}

#[test]
fn change_retrieves_its_path_once() {
    let fixture = filled().reopened(RAM_BYTES);
    reads(&fixture);
    let mut measured = BTreeMap::new();
    let mut measure = |name: &'static str, op: &dyn Fn(&TreeFixture)| {
        measured.insert(name, waits(&fixture, op));
    };
    measure("1 create", &|fixture| {
        fixture.create("d9/new", bytes(10, 1)).unwrap();
    });
    measure("2 write", &|fixture| {
        fixture.write(at("d9/new"), 5, bytes(100, 1)).unwrap();
    });
    measure("3 set", &|fixture| {
        fixture.set("d9/new", SetStat { mode: Some(0o600), ..SetStat::default() }).unwrap();
    });
    measure("4 rename within", &|fixture| fixture.rename("d9/new", "d9/newer", 0).unwrap());
    measure("5 rename across", &|fixture| fixture.rename("d9/newer", "d11/new", 0).unwrap());
    measure("6 remove", &|fixture| fixture.remove("d11/new").unwrap());
    measure("7 mkdir", &|fixture| {
        fixture.mkdir("d12/dir").unwrap();
    });
    measure("8 rmdir", &|fixture| fixture.rmdir("d12/dir").unwrap());
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
    for (name, waited) in &measured {
        assert!(*waited <= most[name], "{name} waits {waited} times: {measured:?}");
    }
}
