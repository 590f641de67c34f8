//! Stores that stop in the middle of a change.

use super::world::{World, bytes, open};
use crate::id::NodeId;
use crate::store::{BlockStore, MemoryStore};
use crate::tree::{BlockTree, OpenFault, TreeOptions};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, Timestamp};

#[test]
fn a_change_that_is_broken_off_leaves_the_tree_before_it() {
    for stops_after in 0..2 {
        let world = World::new();
        world.create("f", bytes(3000, 1)).unwrap();
        let before = world.dump("");
        world.store.writes_left.store(stops_after, Ordering::Relaxed);
        assert_eq!(world.create("g", bytes(3000, 2)).map(drop), Err(Errno::Io));
        world.store.writes_left.store(u64::MAX, Ordering::Relaxed);
        let world = world.reopened(0);
        assert_eq!(world.dump(""), before, "stopped after {stops_after} writes");
        world.audit();
    }
}

#[test]
fn a_change_whose_old_blocks_were_not_deregistered_is_cleaned_up_at_the_next_opening() {
    let world = World::new();
    world.create("f", bytes(3000, 1)).unwrap();
    world.store.keeps_all.store(true, Ordering::Relaxed);
    world.create("f", bytes(3000, 2)).unwrap();
    world.store.keeps_all.store(false, Ordering::Relaxed);
    assert!(world.store.all().len() > world.reached().len());
    let world = world.reopened(0);
    world.audit();
    assert_eq!(world.read("f"), Ok(bytes(3000, 2)));
}

#[test]
fn when_it_is_not_known_which_root_counts_nothing_more_is_changed() {
    let world = World::new();
    world.create("f", bytes(3000, 1)).unwrap();
    world.store.writes_left.store(1, Ordering::Relaxed);
    assert_eq!(world.create("g", bytes(10, 2)).map(drop), Err(Errno::Io));
    world.store.writes_left.store(u64::MAX, Ordering::Relaxed);
    assert_eq!(world.create("h", bytes(10, 2)).map(drop), Err(Errno::Io));
    assert_eq!(world.read("f"), Ok(bytes(3000, 1)));
}

#[test]
fn a_store_without_room_keeps_nothing_of_the_change_and_goes_on_when_there_is_room() {
    for room in 0..2 {
        let world = World::new();
        world.create("f", bytes(3000, 1)).unwrap();
        let before = world.store.all();
        world.store.room_left.store(room, Ordering::Relaxed);
        assert_eq!(world.create("g", bytes(3000, 2)).map(drop), Err(Errno::NoSpace), "room for {room}");
        assert_eq!(world.store.all(), before, "room for {room}");
        world.store.room_left.store(u64::MAX, Ordering::Relaxed);
        // With ids that nobody has seen, which the store looks at.
        world.create("g", bytes(3000, 2)).unwrap();
        world.remove("f").unwrap();
        world.audit();
        assert_eq!(world.read("g"), Ok(bytes(3000, 2)));
    }
}

#[test]
fn a_store_that_failed_once_is_used_again_with_other_ids() {
    let world = World::new();
    world.store.writes_left.store(0, Ordering::Relaxed);
    assert_eq!(world.create("f", bytes(10, 2)).map(drop), Err(Errno::Io));
    world.store.writes_left.store(u64::MAX, Ordering::Relaxed);
    world.create("f", bytes(10, 3)).unwrap();
    world.audit();
}

fn options() -> TreeOptions {
    TreeOptions { ram_bytes: 0, node: NodeId(1), boot: BootId(9), uid: 5, gid: 6 }
}

fn clock() -> crate::tree::Clock {
    Box::new(|| Timestamp { secs: 1, nanos: 0 })
}

#[test]
fn what_is_no_tree_is_not_opened() {
    let small = Arc::new(MemoryStore::new(100, 10));
    assert_eq!(BlockTree::open(small, options(), clock()).unwrap_err(), OpenFault::Payload(100));
    let store = Arc::new(MemoryStore::new(1400, 10));
    BlockTree::open(Arc::clone(&store) as Arc<dyn BlockStore>, options(), clock()).unwrap();
    let root = store.root().unwrap().unwrap();
    store.deregister(&[root]);
    assert_eq!(BlockTree::open(store, options(), clock()).unwrap_err(), OpenFault::RootLost(root));
}

#[test]
fn a_new_tree_belongs_to_whom_it_is_made_for() {
    let store = Arc::new(MemoryStore::new(1400, 10));
    let tree = BlockTree::open(store, options(), clock()).unwrap();
    let attached = tree.attach(1, &wirefs_op::TreePath::root()).unwrap();
    assert_eq!((attached.root.uid, attached.root.gid, attached.is_read_only), (5, 6, false));
}

#[test]
fn blocks_of_other_nodes_are_left_to_them() {
    let world = World::new();
    let foreign = crate::id::BlockId::new(1 << 30, NodeId(2)).unwrap();
    world.store.inner.register(&[(foreign, bytes(10, 1))]).unwrap();
    let tree = open(Arc::clone(&world.store), 0);
    assert!(world.store.all().contains(&foreign));
    tree.create_checkpoint(b"one").unwrap();
    // What is made from now on is newer.
    assert!(world.store.root().unwrap() > Some(foreign));
}
