//! The block tree: one store, its sessions, and the execution of operations.
//!
//! ```text
//! changes   one at a time: run, register, switch the root, deregister      locks: changes, then state
//! readers   concurrent, each on the root that it started with              lock: state, briefly
//! ```

mod checkpoints;
mod collection;
mod command;
mod commit;
mod difference;
mod file;
mod find;
mod get;
mod listing;
mod locate;
mod name;
mod open;
mod put;
mod reply_writer;
mod serve;
mod session;
#[cfg(test)]
mod tests;
mod transaction;

use crate::affected::UnrequestedChange;
use crate::block_set::BlockSet;
use crate::cache::Cache;
use crate::collect::Reaper;
use crate::geometry::Geometry;
use crate::halt::Halt;
use crate::id::{IdAllocator, WriterId};
use crate::key::Ino;
use crate::limits::{READ_TRIES_MAX, ROUNDS_MAX};
use crate::opens::Opens;
use crate::store::{BlockStore, Wanted};
use crate::volume::Volume;
pub use checkpoints::Checkpoint;
pub use collection::SweepResult;
pub use difference::{Difference, DifferenceKind};
pub(crate) use locate::CHECKPOINTS_NAME;
use locate::Trees;
pub use open::OpenFault;
pub use serve::{AttachedRoot, ReplySink, RequestAborted};
use session::Session;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, Timestamp};

/// Returns the current time of day.
pub type Clock = Box<dyn Fn() -> Timestamp + Send + Sync>;

/// The options for opening a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeOptions {
    /// The budget of the block cache, in bytes. With 0, each operation retrieves all blocks that it needs.
    pub ram_bytes: usize,
    /// The node that writes blocks.
    pub node: WriterId,
    /// The boot id reported to clients; it changes when unsynced writes may be lost. See [`BootId`].
    pub boot: BootId,
    /// The owner of the root directory of a new tree.
    pub uid: u32,
    /// The group of the root directory of a new tree.
    pub gid: u32,
}

/// Counters since the tree was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeStatistics {
    /// Retrievals: each fetches all blocks that an operation lacks at that moment.
    pub waits: u64,
    /// Blocks that operations requested.
    pub wanted: u64,
    /// Blocks that arrived, hints included.
    pub retrieved: u64,
    /// Requested blocks that were lost.
    pub lost: u64,
    /// Registered blocks.
    pub registered: u64,
    /// Deregistered blocks.
    pub deregistered: u64,
    /// The estimated memory of the block cache, in bytes.
    pub ram_bytes: u64,
    /// Objects and trees that wait for garbage collection.
    pub backlog: u64,
}

/// A copy-on-write file system that serves Op requests.
///
/// # Source
/// PingFS, "How do we turn an unordered stream of blocks into a filesystem?". Names apart from blocks, the
/// inode table and garbage collection by the order of ids are ours.
pub struct BlockTree {
    store: Arc<dyn BlockStore>,
    options: TreeOptions,
    geometry: Geometry,
    clock: Clock,
    cache: Cache,
    changes: Mutex<Changes>,
    state: Mutex<TreeState>,
    opens: Opens,
    counts: Counts,
    observer: Mutex<Option<Observer>>,
    /// The root of another node, read ahead of the switch to it.
    prepared: Mutex<Option<Volume>>,
    /// The callback of a thread that is about to block on the running change.
    before_waiting: OnceLock<fn()>,
}

/// Receives modifications that no request announced.
type Observer = Box<dyn FnMut(UnrequestedChange) + Send>;

/// The state that only the running change may access.
#[derive(Debug)]
struct Changes {
    ids: IdAllocator,
    reaper: Option<Reaper>,
    /// The collection waits for delayed blocks; changes do not run further steps.
    is_blocked: bool,
    /// Orphans from this inode number on may be missing in the backlog.
    orphans_unread_from: Option<Ino>,
    /// The contents of the store are unknown; all changes fail.
    is_broken: bool,
}

/// The state that readers share.
#[derive(Debug)]
struct TreeState {
    volume: Arc<Volume>,
    sessions: BTreeMap<u64, Session>,
}

/// The counters of [`TreeStatistics`].
#[derive(Debug, Default)]
struct Counts {
    waits: AtomicU64,
    wanted: AtomicU64,
    retrieved: AtomicU64,
    lost: AtomicU64,
    registered: AtomicU64,
    deregistered: AtomicU64,
}

impl std::fmt::Debug for BlockTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockTree").field("options", &self.options).finish_non_exhaustive()
    }
}

fn count(counter: &AtomicU64, more: usize) {
    counter.fetch_add(more as u64, Ordering::Relaxed);
}

impl BlockTree {
    fn state(&self) -> MutexGuard<'_, TreeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks changes. The holder may wait for space, or for other nodes.
    fn changes(&self) -> MutexGuard<'_, Changes> {
        match self.changes.try_lock() {
            Ok(changes) => changes,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                if let Some(notify) = self.before_waiting.get() {
                    notify();
                }
                self.changes.lock().unwrap_or_else(PoisonError::into_inner)
            }
        }
    }

    fn observer(&self) -> MutexGuard<'_, Option<Observer>> {
        self.observer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn volume(&self) -> Arc<Volume> {
        Arc::clone(&self.state().volume)
    }

    /// Registers a callback that each thread calls before it blocks on the store or on a running change.
    /// Returns `false` if the store does not support it.
    pub fn before_waiting(&self, notify: fn()) -> bool {
        self.store.before_waiting(notify) && self.before_waiting.set(notify).is_ok()
    }

    /// Returns the counters.
    pub fn statistics(&self) -> TreeStatistics {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let destroyed = self.volume().destroyed.len();
        TreeStatistics {
            waits: load(&self.counts.waits),
            wanted: load(&self.counts.wanted),
            retrieved: load(&self.counts.retrieved),
            lost: load(&self.counts.lost),
            registered: load(&self.counts.registered),
            deregistered: load(&self.counts.deregistered),
            ram_bytes: self.cache.bytes() as u64,
            backlog: (self.opens.backlog() + destroyed) as u64,
        }
    }

    /// Runs an operation until it completes; before each retry, retrieves the blocks that it lacked.
    fn run<R>(&self, block_set: &BlockSet<'_>, mut op: impl FnMut() -> Result<R, Halt>) -> Result<R, Halt> {
        for _ in 0..ROUNDS_MAX {
            match op() {
                Err(Halt::Need(wanted)) => self.supply(block_set, &wanted),
                outcome => return outcome,
            }
        }
        Err(Halt::Failed(Errno::Io))
    }

    fn supply(&self, block_set: &BlockSet<'_>, wanted: &Wanted) {
        count(&self.counts.waits, 1);
        count(&self.counts.wanted, wanted.ids.len());
        self.store.retrieve(wanted, &mut |id, block| {
            match (block, wanted.ids.contains(&id)) {
                (Ok(bytes), true) => {
                    count(&self.counts.retrieved, 1);
                    block_set.supply(id, Ok(bytes));
                }
                (Ok(bytes), false) => {
                    count(&self.counts.retrieved, 1);
                    block_set.supply_hint(id, bytes);
                }
                (Err(lost), true) => {
                    count(&self.counts.lost, 1);
                    block_set.supply(id, Err(lost));
                }
                // The hint may never be required.
                (Err(_), false) => {}
            }
        });
        block_set.give_up(wanted);
    }

    /// Runs a read operation on one root, and returns its result with that volume.
    ///
    /// Readers block neither changes nor deregistration. If a block disappears because the tree has changed,
    /// the operation restarts on the new root.
    fn read_tree<R>(&self, op: impl Fn(&Trees<'_>) -> Result<R, Halt>) -> Result<(R, Arc<Volume>), Errno> {
        self.read_tree_in(None, op)
    }

    /// As [`read_tree`](Self::read_tree), within the transaction of the caller if it has one. Other nodes may
    /// commit even then.
    fn read_tree_in<R>(
        &self,
        held: Option<&Changes>,
        op: impl Fn(&Trees<'_>) -> Result<R, Halt>,
    ) -> Result<(R, Arc<Volume>), Errno> {
        for attempt in 0..=READ_TRIES_MAX {
            // A reader that restarted too often blocks changes.
            let _changes = (attempt == READ_TRIES_MAX && held.is_none()).then(|| self.changes());
            let volume = self.volume();
            let block_set = BlockSet::new(&self.cache);
            let (geometry, boot) = (self.geometry, self.options.boot);
            let trees = Trees { volume: &volume, block_set: &block_set, geometry, boot };
            match self.run(&block_set, || op(&trees)) {
                Ok(found) => return Ok((found, volume)),
                Err(Halt::Failed(errno)) => return Err(errno),
                Err(Halt::Lost(_)) if self.volume().id != volume.id => {}
                Err(Halt::Lost(_) | Halt::Need(_)) => return Err(Errno::Io),
            }
        }
        Err(Errno::Io)
    }
}
