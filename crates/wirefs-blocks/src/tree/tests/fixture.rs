//! A tree, a store with injectable faults, and a client that sends requests by path.

use crate::block::Block;
use crate::block_set::BlockSet;
use crate::cache::Cache;
use crate::halt::Halt;
use crate::id::{BlockId, WriterId};
use crate::map::Map;
use crate::store::{BlockStore, Lost, MemoryStore, Room, StoreFault, Wanted};
use crate::tree::{BlockTree, CHECKPOINTS_NAME, ReplySink, RequestAborted, TreeOptions};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use wirefs_op::listing::entries;
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::message::link::Tlink;
use wirefs_op::message::put::{Create, PutMode, Rput, Tput};
use wirefs_op::message::remove::Tremove;
use wirefs_op::message::rename::Trename;
use wirefs_op::message::target::{Fd, NOFD, Place, Target};
use wirefs_op::message::version::BootId;
use wirefs_op::message::xattr::{Txattr, XattrAction};
use wirefs_op::wire::{Data, Text};
use wirefs_op::{Cred, DirEntry, Errno, Kind, Reply, Request, SetStat, Stat, Timestamp, TreePath};

/// The payload of an Ethernet frame after IP and ICMP headers, with a margin. In bytes.
pub(super) const PAYLOAD_BYTES: usize = 1400;
pub(super) const SESSION: u64 = 1;

/// A store in memory that can lose blocks, fill up, or fail.
pub(super) struct FaultyStore {
    pub(super) inner: MemoryStore,
    lost: Mutex<BTreeSet<BlockId>>,
    /// Registered blocks that cannot be retrieved for now.
    delayed: Mutex<BTreeSet<BlockId>>,
    /// All ids passed to `register`, even if it failed.
    seen: Mutex<BTreeSet<BlockId>>,
    /// Calls of `register` and `switch_root` before the store fails.
    pub(super) writes_left: AtomicU64,
    /// Calls of `register` and `switch_root` before the store is full.
    pub(super) room_left: AtomicU64,
    /// Whether hints are delivered.
    pub(super) takes_hints: AtomicBool,
    /// The data that readers request ahead, in bytes.
    pub(super) read_ahead: AtomicU64,
    /// Blocks that were requested, as required ones or as hints.
    pub(super) requested: Mutex<BTreeSet<BlockId>>,
    /// Retrievals of a block that was not requested before.
    pub(super) first_requests: AtomicU64,
    /// Whether `deregister` does nothing.
    pub(super) keeps_all: AtomicBool,
    /// A callback during the next retrieval.
    pub(super) meanwhile: Mutex<Option<Meanwhile>>,
}

pub(super) struct Meanwhile(pub(super) Box<dyn FnOnce() + Send>);

impl FaultyStore {
    pub(super) fn new(inner: MemoryStore) -> FaultyStore {
        FaultyStore {
            inner,
            lost: Mutex::default(),
            delayed: Mutex::default(),
            seen: Mutex::default(),
            writes_left: AtomicU64::new(u64::MAX),
            room_left: AtomicU64::new(u64::MAX),
            takes_hints: AtomicBool::new(false),
            read_ahead: AtomicU64::new(0),
            requested: Mutex::default(),
            first_requests: AtomicU64::new(0),
            keeps_all: AtomicBool::new(false),
            meanwhile: Mutex::default(),
        }
    }

    pub(super) fn lose(&self, id: BlockId) {
        self.lost.lock().unwrap().insert(id);
        self.inner.deregister(&[id]);
    }

    /// Delays exactly these blocks.
    pub(super) fn hold_back(&self, ids: impl IntoIterator<Item = BlockId>) {
        *self.delayed.lock().unwrap() = ids.into_iter().collect();
    }

    pub(super) fn all(&self) -> BTreeSet<BlockId> {
        self.registered(None, usize::MAX).into_iter().collect()
    }

    pub(super) fn block(&self, id: BlockId) -> Option<Block> {
        let mut found = None;
        self.inner.retrieve(&Wanted::of([id]), &mut |_, bytes| found = bytes.ok());
        found.map(|bytes| Block::decode(bytes).unwrap())
    }

    fn write(&self) -> Result<(), StoreFault> {
        let take = |left: &AtomicU64| {
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
        };
        if !take(&self.writes_left) {
            return Err(StoreFault::Broken("an injected fault"));
        }
        if take(&self.room_left) { Ok(()) } else { Err(StoreFault::Full) }
    }
}

impl BlockStore for FaultyStore {
    fn payload_bytes(&self) -> usize {
        self.inner.payload_bytes()
    }
    fn read_ahead_bytes(&self) -> u64 {
        self.read_ahead.load(Ordering::Relaxed)
    }
    fn register(&self, blocks: &[(BlockId, Bytes)]) -> Result<(), StoreFault> {
        let is_new = blocks.iter().all(|(id, _)| self.seen.lock().unwrap().insert(*id));
        assert!(is_new, "a block id that was used before");
        self.write()?;
        self.inner.register(blocks)
    }
    fn retrieve(&self, wanted: &Wanted, deliver: &mut dyn FnMut(BlockId, Result<Bytes, Lost>)) {
        let meanwhile = self.meanwhile.lock().unwrap().take();
        if let Some(Meanwhile(work)) = meanwhile {
            work();
        }
        let mut requested = self.requested.lock().unwrap();
        if !wanted.ids.is_subset(&requested) {
            self.first_requests.fetch_add(1, Ordering::Relaxed);
        }
        requested.extend(wanted.ids.union(&wanted.hints));
        drop(requested);
        // Blocks arrive in another order than requested.
        for id in wanted.ids.iter().rev() {
            if self.delayed.lock().unwrap().contains(id) {
                deliver(*id, Err(Lost));
                continue;
            }
            self.inner.retrieve(&Wanted::of([*id]), deliver);
        }
        if self.takes_hints.load(Ordering::Relaxed) {
            self.inner.retrieve(&Wanted::of(wanted.hints.iter().copied()), deliver);
        }
    }
    fn is_gone(&self, id: BlockId) -> bool {
        !self.delayed.lock().unwrap().contains(&id)
    }
    fn deregister(&self, ids: &[BlockId]) {
        if !self.keeps_all.load(Ordering::Relaxed) {
            self.inner.deregister(ids);
        }
    }
    fn registered(&self, after: Option<BlockId>, count_max: usize) -> Vec<BlockId> {
        self.inner.registered(after, count_max)
    }
    fn root(&self) -> Result<Option<BlockId>, StoreFault> {
        self.inner.root()
    }
    fn switch_root(&self, root: BlockId) -> Result<(), StoreFault> {
        self.write()?;
        self.inner.switch_root(root)
    }
    fn sync(&self) -> Result<(), StoreFault> {
        self.inner.sync()
    }
    fn room(&self) -> Room {
        self.inner.room()
    }
    /// The store never blocks.
    fn before_waiting(&self, _: fn()) -> bool {
        true
    }
}

/// All replies to one request.
#[derive(Default)]
pub(super) struct CollectedReplies(pub(super) Vec<Reply>);

impl ReplySink for CollectedReplies {
    fn send(&mut self, reply: Reply) -> Result<(), RequestAborted> {
        self.0.push(reply);
        Ok(())
    }
}

pub(super) struct TreeFixture {
    pub(super) store: Arc<FaultyStore>,
    pub(super) tree: BlockTree,
}

/// The state of an object that a copy preserves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dumped {
    pub(super) stat: Stat,
    pub(super) data: Bytes,
    pub(super) xattrs: BTreeMap<Vec<u8>, Bytes>,
}

pub(super) fn path(path: &str) -> TreePath {
    TreePath::from_bytes(Bytes::copy_from_slice(path.as_bytes())).unwrap()
}

pub(super) fn at(text: &str) -> Target {
    Target::at(path(text))
}

pub(super) fn bytes(len: usize, seed: u8) -> Bytes {
    (0..len).map(|at| (at as u8).wrapping_mul(31).wrapping_add((at >> 8) as u8).wrapping_add(seed)).collect()
}

pub(super) fn open(store: Arc<FaultyStore>, ram_bytes: usize) -> BlockTree {
    open_after_boot(store, ram_bytes, BootId(9))
}

fn open_after_boot(store: Arc<FaultyStore>, ram_bytes: usize, boot: BootId) -> BlockTree {
    let now = AtomicI64::new(1_700_000_000);
    let clock = Box::new(move || Timestamp { secs: now.fetch_add(1, Ordering::Relaxed), nanos: 5 });
    let options = TreeOptions { ram_bytes, node: WriterId(1), boot, uid: 0, gid: 0 };
    let tree = BlockTree::open(store, options, clock).unwrap();
    tree.attach(SESSION, &TreePath::root()).unwrap();
    tree
}

impl TreeFixture {
    pub(super) fn new() -> TreeFixture {
        TreeFixture::of(PAYLOAD_BYTES, 1 << 20, 1 << 20)
    }

    pub(super) fn of(payload_bytes: usize, blocks_max: u64, ram_bytes: usize) -> TreeFixture {
        let store = Arc::new(FaultyStore::new(MemoryStore::new(payload_bytes, blocks_max)));
        TreeFixture { tree: open(Arc::clone(&store), ram_bytes), store }
    }

    /// Opens the same store again, with an empty cache.
    pub(super) fn reopened(self, ram_bytes: usize) -> TreeFixture {
        TreeFixture { tree: open(Arc::clone(&self.store), ram_bytes), store: self.store }
    }

    /// Opens the same store again, as after a restart of the machine.
    pub(super) fn rebooted(self, boot: BootId) -> TreeFixture {
        TreeFixture { tree: open_after_boot(Arc::clone(&self.store), 1 << 20, boot), store: self.store }
    }

    pub(super) fn ask(&self, request: Request) -> Result<Vec<Reply>, Errno> {
        let mut collected = CollectedReplies::default();
        self.tree.serve(SESSION, &request, &mut collected);
        match collected.0.last() {
            Some(Reply::Error(error)) => Err(error.errno),
            Some(_) => Ok(collected.0),
            None => panic!("no reply to {request:?}"),
        }
    }

    fn get(&self, target: Target, mode: GetMode, offset: u64) -> Result<(Stat, Fd, Bytes), Errno> {
        let get = Tget { target, mode: mode.and(GetMode::STAT), nmsgs: 0, offset, count: u32::MAX };
        let replies = self.ask(Request::Get(get))?;
        let (mut stat, mut fd, mut data) = (None, NOFD, Vec::new());
        for reply in replies {
            let Reply::Get(got) = reply else { panic!("{reply:?}") };
            stat = stat.or(got.stat);
            fd = got.fd;
            data.extend_from_slice(&got.data.0);
        }
        Ok((stat.unwrap(), fd, Bytes::from(data)))
    }

    pub(super) fn stat(&self, path: &str) -> Result<Stat, Errno> {
        self.get(at(path), GetMode::STAT, 0).map(|(stat, _, _)| stat)
    }

    pub(super) fn read(&self, path: &str) -> Result<Bytes, Errno> {
        self.get(at(path), GetMode::DATA, 0).map(|(_, _, data)| data)
    }

    /// Reads part of a file.
    pub(super) fn read_at(&self, path: &str, offset: u64, count: u32) -> Result<Bytes, Errno> {
        let get = Tget { target: at(path), mode: GetMode::DATA, nmsgs: 1, offset, count };
        let replies = self.ask(Request::Get(get))?;
        let Some(Reply::Get(reply)) = replies.into_iter().next() else { panic!("no data") };
        Ok(reply.data.0)
    }

    pub(super) fn open_file(&self, path: &str) -> Result<Target, Errno> {
        let (stat, fd, _) = self.get(at(path), GetMode::MORE, 0)?;
        Ok(Target { fd, id: Some(stat.id), ..at(path) })
    }

    pub(super) fn read_open(&self, target: &Target) -> Result<Bytes, Errno> {
        self.get(target.clone(), GetMode::DATA.and(GetMode::MORE), 0).map(|(_, _, data)| data)
    }

    pub(super) fn close(&self, target: &Target) -> Result<(), Errno> {
        self.get(target.clone(), GetMode::NONE, 0).map(drop)
    }

    pub(super) fn list(&self, path: &str) -> Result<Vec<DirEntry>, Errno> {
        Ok(entries(self.read(path)?).unwrap())
    }

    pub(super) fn names(&self, path: &str) -> Vec<String> {
        let listed = self.list(path).unwrap().into_iter();
        let mut names: Vec<String> = listed.map(|entry| String::from_utf8(entry.name).unwrap()).collect();
        names.sort();
        names
    }

    fn put(&self, put: Tput) -> Result<Stat, Errno> {
        self.put_fully(put).map(|put| put.stat.unwrap())
    }

    pub(super) fn put_fully(&self, put: Tput) -> Result<Rput, Errno> {
        match self.ask(Request::Put(put))?.pop() {
            Some(Reply::Put(put)) => Ok(put),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn make(&self, path: &str, kind: Kind, data: Bytes) -> Result<Stat, Errno> {
        let create = Create { kind, mode: 0o755, rdev: 0, cred: Cred::default() };
        let writes = kind == Kind::File && !data.is_empty();
        let mode =
            PutMode::CREATE.and_if(writes, PutMode::DATA).and_if(kind != Kind::File, PutMode::EXCLUSIVE);
        self.put(Tput {
            target: at(path),
            mode,
            create: Some(create),
            set: SetStat::default(),
            offset: 0,
            data: Data(data),
        })
    }

    pub(super) fn mkdir(&self, path: &str) -> Result<Stat, Errno> {
        self.make(path, Kind::Directory, Bytes::new())
    }

    /// Creates a file, or overwrites its beginning.
    pub(super) fn create(&self, path: &str, data: Bytes) -> Result<Stat, Errno> {
        self.make(path, Kind::File, data)
    }

    pub(super) fn write(&self, target: Target, offset: u64, data: Bytes) -> Result<Stat, Errno> {
        let mode = PutMode::DATA.and_if(target.fd != NOFD, PutMode::MORE);
        self.put(Tput { target, mode, create: None, set: SetStat::default(), offset, data: Data(data) })
    }

    pub(super) fn set(&self, path: &str, set: SetStat) -> Result<Stat, Errno> {
        let (mode, data) = (PutMode::STAT, Data::default());
        self.put(Tput { target: at(path), mode, create: None, set, offset: 0, data })
    }

    pub(super) fn resize(&self, path: &str, size: u64) -> Result<Stat, Errno> {
        self.set(path, SetStat { size: Some(size), ..SetStat::default() })
    }

    pub(super) fn remove(&self, path: &str) -> Result<(), Errno> {
        self.remove_kind(path, false)
    }

    pub(super) fn rmdir(&self, path: &str) -> Result<(), Errno> {
        self.remove_kind(path, true)
    }

    fn remove_kind(&self, text: &str, directory: bool) -> Result<(), Errno> {
        let place = Place { path: path(text), dir: None };
        self.ask(Request::Remove(Tremove { place, directory })).map(drop)
    }

    pub(super) fn rename(&self, from: &str, to: &str, flags: u32) -> Result<(), Errno> {
        let place = |text| Place { path: path(text), dir: None };
        self.ask(Request::Rename(Trename { from: place(from), to: place(to), flags })).map(drop)
    }

    pub(super) fn link(&self, from: &str, to: &str) -> Result<(), Errno> {
        let to = Place { path: path(to), dir: None };
        self.ask(Request::Link(Tlink { target: at(from), to })).map(drop)
    }

    pub(super) fn xattr(
        &self,
        path: &str,
        action: XattrAction,
        name: &str,
        value: Bytes,
    ) -> Result<Bytes, Errno> {
        let request = Txattr {
            target: at(path),
            action,
            name: Text::new(name.as_bytes()),
            flags: 0,
            kill_sgid: false,
            value: Data(value),
        };
        match self.ask(Request::Xattr(request))?.pop() {
            Some(Reply::Xattr(xattr)) => Ok(xattr.value.0),
            other => panic!("{other:?}"),
        }
    }

    /// Returns the state of all objects below a directory, by path.
    pub(super) fn dump(&self, root: &str) -> BTreeMap<String, Dumped> {
        let mut dumped = BTreeMap::new();
        let mut waiting = vec![String::new()];
        while let Some(below) = waiting.pop() {
            let whole =
                [root, &below].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
            let mut stat = self.stat(&whole).unwrap();
            // The file system id differs between trees.
            stat.id.fs = 0;
            if below.is_empty() {
                // The version of the root changes when `.checkpoints` appears or disappears.
                stat.version = 0;
            }
            let data = match stat.kind {
                Kind::Directory => {
                    for entry in self.list(&whole).unwrap() {
                        if entry.name == CHECKPOINTS_NAME {
                            continue;
                        }
                        let name = String::from_utf8(entry.name).unwrap();
                        waiting.push(if below.is_empty() { name } else { format!("{below}/{name}") });
                    }
                    Bytes::new()
                }
                _ => self.read(&whole).unwrap(),
            };
            let names = self.xattr(&whole, XattrAction::List, "", Bytes::new()).unwrap();
            let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
            let value = |name: &[u8]| {
                let text = std::str::from_utf8(name).unwrap();
                self.xattr(&whole, XattrAction::Read, text, Bytes::new()).unwrap()
            };
            let xattrs = names.map(|name| (name.to_vec(), value(name))).collect();
            dumped.insert(below, Dumped { stat, data, xattrs });
        }
        dumped
    }

    /// Runs garbage collection to its end.
    pub(super) fn collect(&self) {
        while self.tree.collect(1) {}
    }

    /// Returns all blocks that are reachable from the root.
    pub(super) fn reached(&self) -> BTreeSet<BlockId> {
        let volume = self.tree.volume();
        let trees = volume.checkpoints.iter().map(|kept| kept.files).chain([volume.root.files]);
        let mut reached = BTreeSet::from([volume.id]);
        for root in trees.chain(volume.root.table) {
            reached.extend(self.below(root));
        }
        reached
    }

    /// Returns a block and its available descendants.
    pub(super) fn below(&self, root: BlockId) -> BTreeSet<BlockId> {
        let cache = Cache::new(0);
        let mut reached = BTreeSet::new();
        let mut waiting = vec![(root, None)];
        while let Some((id, level)) = waiting.pop() {
            let block_set = BlockSet::new(&cache);
            self.store.inner.retrieve(&Wanted::of([id]), &mut |id, bytes| block_set.supply(id, bytes));
            match (Map { block_set: &block_set, root: Some(root) }).describe(id, level) {
                Ok((_, named)) => {
                    reached.insert(id);
                    for block in named {
                        match block.level {
                            Some(level) => waiting.push((block.id, Some(level))),
                            None => drop(reached.insert(block.id)),
                        }
                    }
                }
                Err(Halt::Lost(_)) => {}
                Err(halt) => panic!("{halt:?}"),
            }
        }
        reached
    }

    /// Asserts that exactly the reachable blocks are registered.
    pub(super) fn audit(&self) {
        let (held, reached) = (self.store.all(), self.reached());
        let missing: Vec<&BlockId> = reached.difference(&held).collect();
        let left: Vec<&BlockId> = held.difference(&reached).collect();
        assert!(missing.is_empty(), "collected although reachable: {missing:?}");
        assert!(left.is_empty(), "registered although unreachable: {left:?}");
    }
}
