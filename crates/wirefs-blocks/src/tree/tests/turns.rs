//! Two trees over one set of blocks, which take turns.

use super::world::{FaultyStore, Meanwhile as During, PAYLOAD_BYTES};
use crate::id::{BlockId, NodeId};
use crate::key::{Ino, ROOT};
use crate::reach::lacking;
use crate::store::{BlockStore, Lost, MemoryStore, Room, StoreFault, Wanted};
use crate::touch::Unasked;
use crate::tree::commit::{Purpose, quietly};
use crate::tree::{BlockTree, TreeOptions};
use crate::turns::{Follower, Turns};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use wirefs_op::message::version::BootId;
use wirefs_op::{SetStat, Timestamp};

/// What all trees have.
struct Table {
    blocks: FaultyStore,
    followers: Mutex<BTreeMap<NodeId, Weak<dyn Follower>>>,
}

/// What happens in place of the next agreement, which comes to nothing.
type Meanwhile = Box<dyn FnOnce() + Send>;

/// One tree's place at it.
struct Seat {
    node: NodeId,
    table: Arc<Table>,
    made: Mutex<Vec<BlockId>>,
    meanwhile: Mutex<Option<Meanwhile>>,
}

impl Seat {
    fn new(node: u16, table: &Arc<Table>) -> Arc<Seat> {
        let table = Arc::clone(table);
        Arc::new(Seat { node: NodeId(node), table, made: Mutex::default(), meanwhile: Mutex::default() })
    }
}

impl Turns for Seat {
    fn begin(&self) -> Result<Option<BlockId>, StoreFault> {
        self.made.lock().unwrap().clear();
        self.table.blocks.root()
    }

    fn agree(&self, root: BlockId, doomed: &[BlockId]) -> Result<bool, StoreFault> {
        let meanwhile = self.meanwhile.lock().unwrap().take();
        if let Some(happens) = meanwhile {
            self.table.blocks.deregister(&self.made.lock().unwrap());
            happens();
            return Ok(false);
        }
        self.table.blocks.switch_root(root)?;
        let followers = self.table.followers.lock().unwrap().clone();
        for (_, follower) in followers.iter().filter(|(node, _)| **node != self.node) {
            if let Some(follower) = follower.upgrade() {
                assert!(follower.prepare(root));
                assert!(follower.go_over(root));
            }
        }
        self.table.blocks.deregister(doomed);
        Ok(true)
    }

    fn end(&self) {}

    fn follow(&self, follower: Weak<dyn Follower>) {
        self.table.followers.lock().unwrap().insert(self.node, follower);
    }
}

impl BlockStore for Seat {
    fn payload_bytes(&self) -> usize {
        PAYLOAD_BYTES
    }

    fn register(&self, blocks: &[(BlockId, Bytes)]) -> Result<(), StoreFault> {
        self.made.lock().unwrap().extend(blocks.iter().map(|(id, _)| *id));
        self.table.blocks.register(blocks)
    }

    fn retrieve(&self, wanted: &Wanted, deliver: &mut dyn FnMut(BlockId, Result<Bytes, Lost>)) {
        self.table.blocks.retrieve(wanted, deliver);
    }

    fn deregister(&self, ids: &[BlockId]) {
        self.table.blocks.deregister(ids);
    }

    fn registered(&self, after: Option<BlockId>, count_max: usize) -> Vec<BlockId> {
        self.table.blocks.registered(after, count_max)
    }

    fn root(&self) -> Result<Option<BlockId>, StoreFault> {
        self.table.blocks.root()
    }

    fn switch_root(&self, _: BlockId) -> Result<(), StoreFault> {
        panic!("a root is agreed on");
    }

    fn sync(&self) -> Result<(), StoreFault> {
        Ok(())
    }

    fn room(&self) -> Room {
        self.table.blocks.room()
    }

    fn turns(&self) -> Option<&dyn Turns> {
        Some(self)
    }
}

fn tree(seat: &Arc<Seat>) -> Arc<BlockTree> {
    let options = TreeOptions { ram_bytes: 0, node: seat.node, boot: BootId(9), uid: 0, gid: 0 };
    let clock = Box::new(|| Timestamp { secs: 1_700_000_000, nanos: 5 });
    let tree = Arc::new(BlockTree::open(Arc::clone(seat) as Arc<dyn BlockStore>, options, clock).unwrap());
    BlockTree::follow(&tree);
    tree
}

fn table() -> Arc<Table> {
    let blocks = FaultyStore::new(MemoryStore::new(PAYLOAD_BYTES, 1_000));
    Arc::new(Table { blocks, followers: Mutex::default() })
}

fn names(tree: &BlockTree) -> Vec<Vec<u8>> {
    tree.checkpoints().into_iter().map(|checkpoint| checkpoint.name.to_vec()).collect()
}

#[test]
fn what_one_tree_changes_the_other_shows_and_its_observer_is_told() {
    let table = table();
    let (one, two) = (tree(&Seat::new(1, &table)), tree(&Seat::new(2, &table)));
    let told = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&told);
    two.observe(Box::new(move |unasked| {
        assert_eq!(unasked, Unasked::Everything);
        *counted.lock().unwrap() += 1;
    }));
    one.create_checkpoint(b"a").unwrap();
    assert_eq!((names(&two), *told.lock().unwrap()), (names(&one), 1));
    two.create_checkpoint(b"b").unwrap();
    assert_eq!(names(&one), [b"a", b"b"]);
    assert_eq!(*told.lock().unwrap(), 1, "its own changes are none of another's");
}

#[test]
fn change_that_came_to_nothing_is_made_again_on_what_the_other_made() {
    let table = table();
    let seat = Seat::new(1, &table);
    let (one, two) = (tree(&seat), tree(&Seat::new(2, &table)));
    let other = Arc::clone(&two);
    let meanwhile: Meanwhile = Box::new(move || other.create_checkpoint(b"other").unwrap());
    *seat.meanwhile.lock().unwrap() = Some(meanwhile);
    one.create_checkpoint(b"own").unwrap();
    assert_eq!(names(&one), [&b"other"[..], b"own"]);
    assert_eq!(names(&two), names(&one));
    // Nothing is left of the first time.
    let root = table.blocks.root().unwrap().unwrap();
    assert_eq!(reached(&table.blocks, root), table.blocks.registered(None, usize::MAX));
}

/// Who has it go over may be the one who brings the blocks that it lacks.
#[test]
fn going_over_waits_for_no_block() {
    let table = table();
    let (one, two) = (tree(&Seat::new(1, &table)), tree(&Seat::new(2, &table)));
    let root = || table.blocks.root().unwrap().unwrap();
    let before = root();
    table.followers.lock().unwrap().remove(&NodeId(2));
    one.create_checkpoint(b"a").unwrap();
    let waits = two.figures().waits;
    assert!(!two.go_over(root()) && names(&two).is_empty(), "nobody has read it");
    assert!(two.go_over(before), "it is there");
    assert_eq!(two.figures().waits, waits);
    assert!(two.prepare(root()));
    let waits = two.figures().waits;
    assert!(!two.go_over(BlockId::new(u64::MAX >> 20, NodeId(7)).unwrap()), "another was read");
    assert!(two.go_over(root()));
    assert_eq!((names(&two), two.figures().waits), (names(&one), waits));
}

/// Has one tree change what the other one reads, for so many times that that waits for a block.
fn overtake(table: &Arc<Table>, one: &Arc<BlockTree>, times: u32) {
    let (again, changes) = (Arc::clone(table), Arc::clone(one));
    let change = move || {
        let set = SetStat { mode: Some(0o700 + times), ..SetStat::default() };
        let outcome = changes.change(Purpose::Fill, &mut quietly, |change| change.set(ROOT, &set), |()| ());
        assert_eq!(outcome, Ok(()));
        if times > 1 {
            overtake(&again, &changes, times - 1);
        }
    };
    *table.blocks.meanwhile.lock().unwrap() = Some(During(Box::new(change)));
}

/// A reader that is overtaken again and again lets the changes wait; one that has their turn has nobody to wait for.
#[test]
fn reader_in_a_turn_that_other_nodes_overtake_comes_to_an_end() {
    let table = table();
    let (one, two) = (tree(&Seat::new(1, &table)), tree(&Seat::new(2, &table)));
    let (sender, ended) = channel();
    std::thread::spawn(move || {
        let mut changes = two.changes();
        changes.dead_unread_from = Some(Ino(0));
        overtake(&table, &one, 20);
        two.collect_all(&mut changes);
        sender.send(table.blocks.meanwhile.lock().unwrap().is_some()).unwrap();
    });
    let is_overtaken = ended.recv_timeout(Duration::from_secs(10));
    assert_eq!(is_overtaken, Ok(true), "it waits for itself, or was overtaken too seldom or for ever");
}

/// The ids of a tree that begins its life in a tree of others are past all that it may have used before.
#[test]
fn tree_that_comes_again_uses_no_id_twice() {
    let table = table();
    let one = tree(&Seat::new(1, &table));
    one.create_checkpoint(b"a").unwrap();
    let before = table.blocks.root().unwrap().unwrap();
    let _again = tree(&Seat::new(1, &table));
    let after = table.blocks.root().unwrap().unwrap();
    assert!(after.counter() - before.counter() > crate::limits::IDS_SKIPPED);
}

/// All that a store would have to get to have a root.
fn reached(blocks: &dyn BlockStore, root: BlockId) -> Vec<BlockId> {
    let copy = MemoryStore::new(PAYLOAD_BYTES, 1_000);
    let has = |id| copy.registered(None, usize::MAX).contains(&id);
    loop {
        let ids = lacking(&copy, root, 3, &has);
        assert!(ids.len() <= 3);
        if ids.is_empty() {
            return copy.registered(None, usize::MAX);
        }
        blocks.retrieve(&Wanted::of(ids), &mut |id, block| copy.register(&[(id, block.unwrap())]).unwrap());
    }
}

#[test]
fn who_asks_for_what_it_lacks_has_all_that_a_root_reaches_at_the_end() {
    let world = super::world::World::new();
    world.mkdir("d").unwrap();
    for number in 0..40 {
        world.create(&format!("d/{number}"), super::world::bytes(number * 300, 7)).unwrap();
    }
    world.tree.create_checkpoint(b"kept").unwrap();
    world.remove("d/39").unwrap();
    while world.tree.collect(16) {}
    let root = world.store.root().unwrap().unwrap();
    assert_eq!(reached(&*world.store, root), world.store.registered(None, usize::MAX));
}
