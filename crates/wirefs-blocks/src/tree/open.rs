//! Opening a tree, and making one in an empty store.

use super::{BlockTree, Changes, Clock, Counts, State, TreeOptions};
use crate::block::{Block, Item, Root};
use crate::cache::Cache;
use crate::geometry::Geometry;
use crate::halt::Halt;
use crate::id::{BlockId, Ids};
use crate::item::{Body, Head};
use crate::key::{FIRST_GROUP, Ino, Key, ROOT};
use crate::limits::IDS_SKIPPED;
use crate::opens::Opens;
use crate::shelf::Shelf;
use crate::store::{BlockStore, StoreFault};
use crate::turns::Turns;
use crate::volume::Volume;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use wirefs_op::{Kind, Timestamp};

/// Ids of left-over blocks that are asked for at a time.
const BATCH: usize = 1024;

/// Why a tree cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenFault {
    /// The store did not do its part.
    #[error(transparent)]
    Store(#[from] StoreFault),
    /// The store's blocks are too small or too large.
    #[error("blocks of {0} bytes cannot hold a tree")]
    Payload(usize),
    /// The root, or what must be known of it, is lost or corrupt.
    #[error("block {0} is lost or corrupt, and the tree with it")]
    RootLost(BlockId),
    /// The tree was made for other blocks than the store's.
    #[error("the tree is of blocks of {tree} bytes, the store of blocks of {store}")]
    OtherPayload {
        /// The tree's, in bytes.
        tree: usize,
        /// The store's, in bytes.
        store: usize,
    },
}

impl BlockTree {
    /// Opens the tree that a store holds; in a store without a root, an empty one is made.
    ///
    /// # Errors
    /// The store fails, or holds something else.
    pub fn open(
        store: Arc<dyn BlockStore>,
        options: TreeOptions,
        clock: Clock,
    ) -> Result<BlockTree, OpenFault> {
        let payload_bytes = store.payload_bytes();
        let geometry = Geometry::new(payload_bytes).ok_or(OpenFault::Payload(payload_bytes))?;
        let mut ids = Ids::new(options.node);
        let cache = Cache::new(options.ram_bytes);
        let mut volume = match (store.turns(), store.root()?) {
            (Some(turns), _) => {
                begin_together(&*store, turns, &cache, &mut ids, geometry, &options, clock())?
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
        if ids == Ids::new(options.node) && store.turns().is_none() {
            ids.observe(volume.id);
            remove_leftovers(&*store, &volume, &mut ids, options);
            begin_life(&*store, &mut volume, &mut ids)?;
        }
        // What is dead here may be open on another node, whose it is then.
        let dead_unread_from = store.turns().is_none().then_some(Ino(0));
        let changes = Changes { ids, reaper: None, is_stuck: false, dead_unread_from, is_broken: false };
        let state = State { volume: Arc::new(volume), sessions: BTreeMap::new() };
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

/// Reads the root.
fn load(store: &dyn BlockStore, cache: &Cache, root: BlockId) -> Result<Volume, OpenFault> {
    let shelf = Shelf::new(cache);
    loop {
        match Volume::load(&shelf, root) {
            Ok(volume) => return Ok(volume),
            Err(Halt::Need(wanted)) => {
                store.retrieve(&wanted, &mut |id, block| shelf.supply(id, block));
                shelf.give_up(&wanted);
            }
            Err(Halt::Lost(id)) => return Err(OpenFault::RootLost(id)),
            Err(Halt::Failed(_)) => return Err(OpenFault::RootLost(root)),
        }
    }
}

/// Makes an empty tree.
fn make(
    ids: &mut Ids,
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
    let mut next = || ids.issue().ok_or(OpenFault::Store(StoreFault::Full));
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
        doomed: Vec::new(),
    };
    let leaf = Block::Head(vec![Item { key: Key::head(ROOT), value: head.encode() }]);
    Ok((id, vec![(files, leaf.encode()), (id, Block::Root(root).encode())]))
}

/// Begins this node's life in a tree that several nodes change: with a root of its own, past the ids of its former lives; or makes
/// the tree, where there is none yet.
fn begin_together(
    store: &dyn BlockStore,
    turns: &dyn Turns,
    cache: &Cache,
    ids: &mut Ids,
    geometry: Geometry,
    options: &TreeOptions,
    now: Timestamp,
) -> Result<Volume, OpenFault> {
    loop {
        let found = turns.begin()?;
        let made = match found {
            Some(id) => load(store, cache, id).and_then(|volume| {
                if ids.ahead_of(id) == 0 {
                    ids.observe(id);
                    ids.skip(IDS_SKIPPED);
                }
                let root = Root { change: volume.root.change + 1, doomed: vec![id], ..volume.root };
                let next = ids.issue().ok_or(OpenFault::Store(StoreFault::Full))?;
                Ok((next, vec![(next, Block::Root(root).encode())]))
            }),
            None => make(ids, geometry, options, now),
        };
        let doomed: Vec<BlockId> = found.into_iter().collect();
        let agreed = made.and_then(|(root, blocks)| {
            store.register(&blocks)?;
            Ok((root, turns.agree(root, &doomed)?))
        });
        turns.end();
        if let (root, true) = agreed? {
            return load(store, cache, root);
        }
    }
}

/// Leaves out the ids of blocks that were made and that nobody knows of any more, and makes a root past them, so that the
/// next life leaves out others. Broken off, it does the very same once more.
fn begin_life(store: &dyn BlockStore, volume: &mut Volume, ids: &mut Ids) -> Result<(), OpenFault> {
    ids.skip(IDS_SKIPPED);
    let id = ids.issue().ok_or(OpenFault::Store(StoreFault::Full))?;
    let root = Root { change: volume.root.change + 1, doomed: vec![volume.id], ..volume.root.clone() };
    store.register(&[(id, Block::Root(root.clone()).encode())])?;
    store.switch_root(id)?;
    store.deregister(&[volume.id]);
    volume.id = id;
    volume.root = root;
    Ok(())
}

/// Deregisters what a change left behind that was broken off: what the present root replaced, and what was registered
/// for a root that never was.
fn remove_leftovers(store: &dyn BlockStore, volume: &Volume, ids: &mut Ids, options: TreeOptions) {
    store.deregister(&volume.root.doomed);
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
