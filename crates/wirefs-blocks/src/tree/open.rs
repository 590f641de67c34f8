//! Opening a tree, or creating one in an empty store.

use super::{BlockTree, Changes, Clock, Counts, TreeOptions, TreeState};
use crate::block::{Block, Item, Root};
use crate::block_set::BlockSet;
use crate::cache::Cache;
use crate::geometry::Geometry;
use crate::halt::Halt;
use crate::id::{BlockId, IdAllocator};
use crate::item::{Body, Head};
use crate::key::{FIRST_GROUP, Ino, Key, ROOT};
use crate::limits::IDS_SKIPPED;
use crate::opens::Opens;
use crate::store::{BlockStore, StoreFault};
use crate::transactions::Transactions;
use crate::volume::Volume;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use wirefs_op::{Kind, Timestamp};

/// Ids of leftover blocks that are read at a time.
const BATCH: usize = 1024;

/// The reason for which a tree cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenFault {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreFault),
    /// The payload of the store is out of range.
    #[error("a tree cannot have blocks of {0} bytes")]
    Payload(usize),
    /// The root or the checkpoint table is lost or corrupt.
    #[error("cannot open the tree: block {0} is lost or corrupt")]
    RootLost(BlockId),
    /// The tree was created for another payload.
    #[error("the tree has blocks of {tree} bytes, but the store has blocks of {store} bytes")]
    OtherPayload {
        /// The payload of the tree, in bytes.
        tree: usize,
        /// The payload of the store, in bytes.
        store: usize,
    },
}

impl BlockTree {
    /// Opens the tree in a store; creates an empty one if the store has no root.
    ///
    /// # Errors
    /// The store failed, or holds another kind of data.
    pub fn open(
        store: Arc<dyn BlockStore>,
        options: TreeOptions,
        clock: Clock,
    ) -> Result<BlockTree, OpenFault> {
        let payload_bytes = store.payload_bytes();
        let geometry = Geometry::new(payload_bytes)
            .ok_or(OpenFault::Payload(payload_bytes))?
            .with_read_ahead(store.read_ahead_bytes());
        let mut ids = IdAllocator::new(options.node);
        let cache = Cache::new(options.ram_bytes);
        let mut volume = match (store.transactions(), store.root()?) {
            (Some(transactions), _) => {
                join_shared(&*store, transactions, &cache, &mut ids, geometry, &options, clock())?
            }
            (None, Some(root)) => load(&*store, &cache, root)?,
            (None, None) => {
                let (root, blocks) = make(&mut ids, geometry, &options, clock())?;
                store.register(&blocks)?;
                store.switch_root(root)?;
                load(&*store, &cache, root)?
            }
        };
        let tree = volume.root.payload_bytes as usize;
        if tree != payload_bytes {
            return Err(OpenFault::OtherPayload { tree, store: payload_bytes });
        }
        if ids == IdAllocator::new(options.node) && store.transactions().is_none() {
            ids.observe(volume.id);
            remove_leftovers(&*store, &volume, &mut ids, options);
            begin_run(&*store, &mut volume, &mut ids)?;
        }
        // An orphan of a shared tree may be open on another node, which removes it then.
        let orphans_unread_from = store.transactions().is_none().then_some(Ino(0));
        let changes = Changes { ids, reaper: None, is_blocked: false, orphans_unread_from, is_broken: false };
        let state = TreeState { volume: Arc::new(volume), sessions: BTreeMap::new() };
        Ok(BlockTree {
            store,
            options,
            geometry,
            clock,
            cache,
            changes: Mutex::new(changes),
            state: Mutex::new(state),
            opens: Opens::default(),
            counts: Counts::default(),
            observer: Mutex::new(None),
            prepared: Mutex::new(None),
            before_waiting: OnceLock::new(),
        })
    }
}

/// Loads the volume of a root.
fn load(store: &dyn BlockStore, cache: &Cache, root: BlockId) -> Result<Volume, OpenFault> {
    let block_set = BlockSet::new(cache);
    loop {
        match Volume::load(&block_set, root) {
            Ok(volume) => return Ok(volume),
            Err(Halt::Need(wanted)) => {
                store.retrieve(&wanted, &mut |id, block| block_set.supply(id, block));
                block_set.give_up(&wanted);
            }
            Err(Halt::Lost(id)) => return Err(OpenFault::RootLost(id)),
            Err(Halt::Failed(_)) => return Err(OpenFault::RootLost(root)),
        }
    }
}

/// Builds the blocks of an empty tree.
fn make(
    ids: &mut IdAllocator,
    geometry: Geometry,
    options: &TreeOptions,
    now: Timestamp,
) -> Result<(BlockId, Vec<(BlockId, Bytes)>), OpenFault> {
    let head = Head {
        kind: Kind::Directory,
        is_fresh: false,
        is_trimmed: false,
        mode: 0o755,
        nlink: 2,
        uid: options.uid,
        gid: options.gid,
        rdev: 0,
        size: 0,
        generation: 0,
        version: 1,
        atime: now,
        mtime: now,
        ctime: now,
        parent: ROOT,
        next_ino: ROOT.next().unwrap_or(Ino(0)),
        xattrs: 0,
        pieces: 0,
        body: Body::Inline(Bytes::new()),
    };
    let mut next = || ids.allocate().ok_or(OpenFault::Store(StoreFault::Full));
    let (files, id) = (next()?, next()?);
    let root = Root {
        payload_bytes: geometry.payload_bytes() as u32,
        change: 1,
        files,
        table: None,
        era: 0,
        next_group: FIRST_GROUP,
        next_serial: 1,
        origin: 0,
        since: None,
        free_list: Vec::new(),
    };
    let leaf = Block::Head(vec![Item { key: Key::head(ROOT), value: head.encode() }]);
    Ok((id, vec![(files, leaf.encode()), (id, Block::Root(root).encode())]))
}

/// Joins a shared tree: creates it if there is none, else commits a new root so that ids continue after those
/// of earlier runs of this node.
fn join_shared(
    store: &dyn BlockStore,
    transactions: &dyn Transactions,
    cache: &Cache,
    ids: &mut IdAllocator,
    geometry: Geometry,
    options: &TreeOptions,
    now: Timestamp,
) -> Result<Volume, OpenFault> {
    loop {
        let found = transactions.begin()?;
        let made = match found {
            Some(id) => load(store, cache, id).and_then(|volume| {
                if ids.distance_from(id) == 0 {
                    ids.observe(id);
                    ids.skip(IDS_SKIPPED);
                }
                let root = Root { change: volume.root.change + 1, free_list: vec![id], ..volume.root };
                let next = ids.allocate().ok_or(OpenFault::Store(StoreFault::Full))?;
                Ok((next, vec![(next, Block::Root(root).encode())]))
            }),
            None => make(ids, geometry, options, now),
        };
        let free_list: Vec<BlockId> = found.into_iter().collect();
        let agreed = made.and_then(|(root, blocks)| {
            store.register(&blocks)?;
            Ok((root, transactions.commit(root, &free_list)?))
        });
        transactions.end();
        if let (root, true) = agreed? {
            return load(store, cache, root);
        }
    }
}

/// Skips ids that aborted changes of earlier runs may have used, and writes a new root beyond them, so that
/// the next run skips other ids. Idempotent if interrupted.
fn begin_run(store: &dyn BlockStore, volume: &mut Volume, ids: &mut IdAllocator) -> Result<(), OpenFault> {
    ids.skip(IDS_SKIPPED);
    let id = ids.allocate().ok_or(OpenFault::Store(StoreFault::Full))?;
    let root = Root { change: volume.root.change + 1, free_list: vec![volume.id], ..volume.root.clone() };
    store.register(&[(id, Block::Root(root.clone()).encode())])?;
    store.switch_root(id)?;
    store.deregister(&[volume.id]);
    volume.id = id;
    volume.root = root;
    Ok(())
}

/// Deregisters the leftovers of an interrupted change: blocks that the present root replaced, and blocks of a
/// root that was never switched to.
fn remove_leftovers(store: &dyn BlockStore, volume: &Volume, ids: &mut IdAllocator, options: TreeOptions) {
    store.deregister(&volume.root.free_list);
    let mut after = volume.id;
    loop {
        let newer = store.registered(Some(after), BATCH);
        let Some(last) = newer.last() else { return };
        after = *last;
        for id in &newer {
            ids.observe(*id);
        }
        let own: Vec<BlockId> = newer.into_iter().filter(|id| id.node() == options.node).collect();
        store.deregister(&own);
    }
}
