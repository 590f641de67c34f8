//! Two trees on one set of blocks, with transactions.

use super::fixture::{FaultyStore, Meanwhile as During, PAYLOAD_BYTES};
use crate::affected::UnrequestedChange;
use crate::id::{BlockId, WriterId};
use crate::key::{Ino, ROOT};
use crate::reachability::missing_blocks;
use crate::store::{BlockStore, Lost, MemoryStore, Room, StoreFault, Wanted};
use crate::transactions::{RootFollower, Transactions};
use crate::tree::commit::{Purpose, no_announcement};
use crate::tree::{BlockTree, TreeOptions};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use wirefs_op::message::version::BootId;
use wirefs_op::{SetStat, Timestamp};

/// The state that all trees share.
struct Shared {
    blocks: FaultyStore,
    followers: Mutex<BTreeMap<WriterId, Weak<dyn RootFollower>>>,
}

/// A callback during the next commit, which is then aborted.
type Meanwhile = Box<dyn FnOnce() + Send>;

/// One tree's access to the shared state.
struct SharedStore {
    node: WriterId,
    shared: Arc<Shared>,
    made: Mutex<Vec<BlockId>>,
    meanwhile: Mutex<Option<Meanwhile>>,
}

impl SharedStore {
    fn new(node: u16, shared: &Arc<Shared>) -> Arc<SharedStore> {
        let shared = Arc::clone(shared);
        Arc::new(SharedStore {
            node: WriterId(node),
            shared,
            made: Mutex::default(),
            meanwhile: Mutex::default(),
        })
    }
}

impl Transactions for SharedStore {
    fn begin(&self) -> Result<Option<BlockId>, StoreFault> {
        self.made.lock().unwrap().clear();
        self.shared.blocks.root()
    }

    fn commit(&self, root: BlockId, free_list: &[BlockId]) -> Result<bool, StoreFault> {
        let meanwhile = self.meanwhile.lock().unwrap().take();
        if let Some(happens) = meanwhile {
            self.shared.blocks.deregister(&self.made.lock().unwrap());
            happens();
            return Ok(false);
        }
        self.shared.blocks.switch_root(root)?;
        let followers = self.shared.followers.lock().unwrap().clone();
        for (_, follower) in followers.iter().filter(|(node, _)| **node != self.node) {
            if let Some(follower) = follower.upgrade() {
                assert!(follower.prepare(root));
                assert!(follower.switch_to(root));
            }
        }
        self.shared.blocks.deregister(free_list);
        Ok(true)
    }

    fn end(&self) {}

    fn follow(&self, follower: Weak<dyn RootFollower>) {
        self.shared.followers.lock().unwrap().insert(self.node, follower);
    }
}

impl BlockStore for SharedStore {
    fn payload_bytes(&self) -> usize {
        PAYLOAD_BYTES
    }

    fn register(&self, blocks: &[(BlockId, Bytes)]) -> Result<(), StoreFault> {
        self.made.lock().unwrap().extend(blocks.iter().map(|(id, _)| *id));
        self.shared.blocks.register(blocks)
    }

    fn retrieve(&self, wanted: &Wanted, deliver: &mut dyn FnMut(BlockId, Result<Bytes, Lost>)) {
        self.shared.blocks.retrieve(wanted, deliver);
    }

    fn deregister(&self, ids: &[BlockId]) {
        self.shared.blocks.deregister(ids);
    }

    fn registered(&self, after: Option<BlockId>, count_max: usize) -> Vec<BlockId> {
        self.shared.blocks.registered(after, count_max)
    }

    fn root(&self) -> Result<Option<BlockId>, StoreFault> {
        self.shared.blocks.root()
    }

    fn switch_root(&self, _: BlockId) -> Result<(), StoreFault> {
        panic!("the tree must commit transactions");
    }

    fn sync(&self) -> Result<(), StoreFault> {
        Ok(())
    }

    fn room(&self) -> Room {
        self.shared.blocks.room()
    }

    fn transactions(&self) -> Option<&dyn Transactions> {
        Some(self)
    }
}

fn tree(store: &Arc<SharedStore>) -> Arc<BlockTree> {
    let options = TreeOptions { ram_bytes: 0, node: store.node, boot: BootId(9), uid: 0, gid: 0 };
    let clock = Box::new(|| Timestamp { secs: 1_700_000_000, nanos: 5 });
    let tree = Arc::new(BlockTree::open(Arc::clone(store) as Arc<dyn BlockStore>, options, clock).unwrap());
    BlockTree::follow(&tree);
    tree
}

fn shared() -> Arc<Shared> {
    let blocks = FaultyStore::new(MemoryStore::new(PAYLOAD_BYTES, 1_000));
    Arc::new(Shared { blocks, followers: Mutex::default() })
}

fn names(tree: &BlockTree) -> Vec<Vec<u8>> {
    tree.checkpoints().into_iter().map(|checkpoint| checkpoint.name.to_vec()).collect()
}

#[test]
fn change_on_one_node_appears_on_the_other_and_notifies_its_observer() {
    let shared = shared();
    let (one, two) = (tree(&SharedStore::new(1, &shared)), tree(&SharedStore::new(2, &shared)));
    let notified = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&notified);
    two.observe(Box::new(move |change| {
        assert_eq!(change, UnrequestedChange::Everything);
        *counted.lock().unwrap() += 1;
    }));
    one.create_checkpoint(b"a").unwrap();
    assert_eq!((names(&two), *notified.lock().unwrap()), (names(&one), 1));
    two.create_checkpoint(b"b").unwrap();
    assert_eq!(names(&one), [b"a", b"b"]);
    assert_eq!(*notified.lock().unwrap(), 1, "a node is not notified of its own changes");
}

#[test]
fn aborted_change_is_repeated_on_the_root_of_the_other_node() {
    let shared = shared();
    let store = SharedStore::new(1, &shared);
    let (one, two) = (tree(&store), tree(&SharedStore::new(2, &shared)));
    let other = Arc::clone(&two);
    let meanwhile: Meanwhile = Box::new(move || other.create_checkpoint(b"other").unwrap());
    *store.meanwhile.lock().unwrap() = Some(meanwhile);
    one.create_checkpoint(b"own").unwrap();
    assert_eq!(names(&one), [&b"other"[..], b"own"]);
    assert_eq!(names(&two), names(&one));
    // Nothing remains of the aborted attempt.
    let root = shared.blocks.root().unwrap().unwrap();
    assert_eq!(reached(&shared.blocks, root), shared.blocks.registered(None, usize::MAX));
}

/// The caller of `switch_to` may be the thread that delivers missing blocks.
#[test]
fn switch_to_waits_for_no_block() {
    let shared = shared();
    let (one, two) = (tree(&SharedStore::new(1, &shared)), tree(&SharedStore::new(2, &shared)));
    let root = || shared.blocks.root().unwrap().unwrap();
    let before = root();
    shared.followers.lock().unwrap().remove(&WriterId(2));
    one.create_checkpoint(b"a").unwrap();
    let waits = two.statistics().waits;
    assert!(!two.switch_to(root()) && names(&two).is_empty(), "it was not prepared");
    assert!(two.switch_to(before), "it is the root");
    assert_eq!(two.statistics().waits, waits);
    assert!(two.prepare(root()));
    let waits = two.statistics().waits;
    assert!(!two.switch_to(BlockId::new(u64::MAX >> 20, WriterId(7)).unwrap()), "another root was prepared");
    assert!(two.switch_to(root()));
    assert_eq!((names(&two), two.statistics().waits), (names(&one), waits));
}

/// Makes one tree change what the other one reads, at its next `times` retrievals.
fn overtake(shared: &Arc<Shared>, one: &Arc<BlockTree>, times: u32) {
    let (again, changes) = (Arc::clone(shared), Arc::clone(one));
    let change = move || {
        let set = SetStat { mode: Some(0o700 + times), ..SetStat::default() };
        let outcome =
            changes.change(Purpose::Fill, &mut no_announcement, |change| change.set(ROOT, &set), |()| ());
        assert_eq!(outcome, Ok(()));
        if times > 1 {
            overtake(&again, &changes, times - 1);
        }
    };
    *shared.blocks.meanwhile.lock().unwrap() = Some(During(Box::new(change)));
}

/// A reader that restarts too often blocks changes. A reader within a transaction cannot, since other nodes
/// commit then.
#[test]
fn reader_in_a_transaction_ends_although_other_nodes_commit() {
    let shared = shared();
    let (one, two) = (tree(&SharedStore::new(1, &shared)), tree(&SharedStore::new(2, &shared)));
    let (sender, ended) = channel();
    std::thread::spawn(move || {
        let mut changes = two.changes();
        changes.orphans_unread_from = Some(Ino(0));
        overtake(&shared, &one, 20);
        two.collect_all(&mut changes);
        sender.send(shared.blocks.meanwhile.lock().unwrap().is_some()).unwrap();
    });
    let is_overtaken = ended.recv_timeout(Duration::from_secs(10));
    assert_eq!(is_overtaken, Ok(true), "a deadlock, or too few or endless restarts");
}

/// The ids of a node that rejoins a shared tree are larger than all that it may have used before.
#[test]
fn rejoining_node_reuses_no_id() {
    let shared = shared();
    let one = tree(&SharedStore::new(1, &shared));
    one.create_checkpoint(b"a").unwrap();
    let before = shared.blocks.root().unwrap().unwrap();
    let _again = tree(&SharedStore::new(1, &shared));
    let after = shared.blocks.root().unwrap().unwrap();
    assert!(after.counter() - before.counter() > crate::limits::IDS_SKIPPED);
}

/// Returns all blocks that a replica needs for a root.
fn reached(blocks: &dyn BlockStore, root: BlockId) -> Vec<BlockId> {
    let copy = MemoryStore::new(PAYLOAD_BYTES, 1_000);
    let has = |id| copy.registered(None, usize::MAX).contains(&id);
    loop {
        let ids = missing_blocks(&copy, root, 3, &has);
        assert!(ids.len() <= 3);
        if ids.is_empty() {
            return copy.registered(None, usize::MAX);
        }
        blocks.retrieve(&Wanted::of(ids), &mut |id, block| copy.register(&[(id, block.unwrap())]).unwrap());
    }
}

#[test]
fn fetching_missing_blocks_yields_all_reachable_blocks() {
    let fixture = super::fixture::TreeFixture::new();
    fixture.mkdir("d").unwrap();
    for number in 0..40 {
        fixture.create(&format!("d/{number}"), super::fixture::bytes(number * 300, 7)).unwrap();
    }
    fixture.tree.create_checkpoint(b"kept").unwrap();
    fixture.remove("d/39").unwrap();
    while fixture.tree.collect(16) {}
    let root = fixture.store.root().unwrap().unwrap();
    assert_eq!(reached(&*fixture.store, root), fixture.store.registered(None, usize::MAX));
}
