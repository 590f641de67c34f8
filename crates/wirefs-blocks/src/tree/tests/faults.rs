//! Stores that fail during a change.

use super::fixture::{TreeFixture, bytes, open};
use crate::id::WriterId;
use crate::store::{BlockStore, MemoryStore};
use crate::tree::{BlockTree, OpenFault, TreeOptions};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, Timestamp};

#[test]
fn interrupted_change_leaves_the_previous_tree() {
    for stops_after in 0..2 {
        let fixture = TreeFixture::new();
        fixture.create("f", bytes(3000, 1)).unwrap();
        let before = fixture.dump("");
        fixture.store.writes_left.store(stops_after, Ordering::Relaxed);
        assert_eq!(fixture.create("g", bytes(3000, 2)).map(drop), Err(Errno::Io));
        fixture.store.writes_left.store(u64::MAX, Ordering::Relaxed);
        let fixture = fixture.reopened(0);
        assert_eq!(fixture.dump(""), before, "stopped after {stops_after} writes");
        fixture.audit();
    }
}

#[test]
fn interrupted_deregistration_is_completed_at_the_next_opening() {
    let fixture = TreeFixture::new();
    fixture.create("f", bytes(3000, 1)).unwrap();
    fixture.store.keeps_all.store(true, Ordering::Relaxed);
    fixture.create("f", bytes(3000, 2)).unwrap();
    fixture.store.keeps_all.store(false, Ordering::Relaxed);
    assert!(fixture.store.all().len() > fixture.reached().len());
    let fixture = fixture.reopened(0);
    fixture.audit();
    assert_eq!(fixture.read("f"), Ok(bytes(3000, 2)));
}

#[test]
fn unknown_root_makes_all_changes_fail() {
    let fixture = TreeFixture::new();
    fixture.create("f", bytes(3000, 1)).unwrap();
    fixture.store.writes_left.store(1, Ordering::Relaxed);
    assert_eq!(fixture.create("g", bytes(10, 2)).map(drop), Err(Errno::Io));
    fixture.store.writes_left.store(u64::MAX, Ordering::Relaxed);
    assert_eq!(fixture.create("h", bytes(10, 2)).map(drop), Err(Errno::Io));
    assert_eq!(fixture.read("f"), Ok(bytes(3000, 1)));
}

#[test]
fn full_store_keeps_nothing_of_a_failed_change() {
    for room in 0..2 {
        let fixture = TreeFixture::new();
        fixture.create("f", bytes(3000, 1)).unwrap();
        let before = fixture.store.all();
        fixture.store.room_left.store(room, Ordering::Relaxed);
        assert_eq!(fixture.create("g", bytes(3000, 2)).map(drop), Err(Errno::NoSpace), "room for {room}");
        assert_eq!(fixture.store.all(), before, "room for {room}");
        fixture.store.room_left.store(u64::MAX, Ordering::Relaxed);
        // The change uses new ids; the store rejects reused ones.
        fixture.create("g", bytes(3000, 2)).unwrap();
        fixture.remove("f").unwrap();
        fixture.audit();
        assert_eq!(fixture.read("g"), Ok(bytes(3000, 2)));
    }
}

#[test]
fn change_after_a_store_fault_uses_new_ids() {
    let fixture = TreeFixture::new();
    fixture.store.writes_left.store(0, Ordering::Relaxed);
    assert_eq!(fixture.create("f", bytes(10, 2)).map(drop), Err(Errno::Io));
    fixture.store.writes_left.store(u64::MAX, Ordering::Relaxed);
    fixture.create("f", bytes(10, 3)).unwrap();
    fixture.audit();
}

fn options() -> TreeOptions {
    TreeOptions { ram_bytes: 0, node: WriterId(1), boot: BootId(9), uid: 5, gid: 6 }
}

fn clock() -> crate::tree::Clock {
    Box::new(|| Timestamp { secs: 1, nanos: 0 })
}

#[test]
fn foreign_data_is_not_opened() {
    let small = Arc::new(MemoryStore::new(100, 10));
    assert_eq!(BlockTree::open(small, options(), clock()).unwrap_err(), OpenFault::Payload(100));
    let store = Arc::new(MemoryStore::new(1400, 10));
    BlockTree::open(Arc::clone(&store) as Arc<dyn BlockStore>, options(), clock()).unwrap();
    let root = store.root().unwrap().unwrap();
    store.deregister(&[root]);
    assert_eq!(BlockTree::open(store, options(), clock()).unwrap_err(), OpenFault::RootLost(root));
}

#[test]
fn new_tree_has_the_configured_owner() {
    let store = Arc::new(MemoryStore::new(1400, 10));
    let tree = BlockTree::open(store, options(), clock()).unwrap();
    let attached = tree.attach(1, &wirefs_op::TreePath::root()).unwrap();
    assert_eq!((attached.root.uid, attached.root.gid, attached.is_read_only), (5, 6, false));
}

#[test]
fn blocks_of_other_nodes_are_not_deregistered() {
    let fixture = TreeFixture::new();
    let foreign = crate::id::BlockId::new(1 << 30, WriterId(2)).unwrap();
    fixture.store.inner.register(&[(foreign, bytes(10, 1))]).unwrap();
    let tree = open(Arc::clone(&fixture.store), 0);
    assert!(fixture.store.all().contains(&foreign));
    tree.create_checkpoint(b"one").unwrap();
    // Later blocks are newer.
    assert!(fixture.store.root().unwrap() > Some(foreign));
}
