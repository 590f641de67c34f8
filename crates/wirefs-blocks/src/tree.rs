//! The block tree: one store, its sessions, and how operations come to their blocks.
//!
//! ```text
//! changes   one at a time: run, register, switch the root, deregister      locks: changes, then state
//! readers   any number, each on the root that it found                     lock: state, for moments
//! ```

mod checkpoints;
mod collecting;
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
mod pieces;
mod put;
mod serve;
mod session;
#[cfg(test)]
mod tests;
mod turn;

use crate::cache::Cache;
use crate::collect::Reaper;
use crate::geometry::Geometry;
use crate::halt::Halt;
use crate::id::{Ids, NodeId};
use crate::key::Ino;
use crate::limits::{READ_TRIES_MAX, ROUNDS_MAX};
use crate::opens::Opens;
use crate::shelf::Shelf;
use crate::store::{BlockStore, Wanted};
use crate::touch::Unasked;
use crate::volume::Volume;
pub use checkpoints::Checkpoint;
pub use collecting::Swept;
pub use difference::{Changed, Difference};
pub(crate) use locate::CHECKPOINTS_NAME;
use locate::Trees;
pub use open::OpenFault;
pub use serve::{Answers, Attached, Stopped};
use session::Session;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, Timestamp};

/// Tells the present time of day.
pub type Clock = Box<dyn Fn() -> Timestamp + Send + Sync>;

/// How a tree is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeOptions {
    /// Memory for blocks between operations, in bytes. With none, each operation retrieves all that it needs.
    pub ram_bytes: usize,
    /// Who makes the blocks.
    pub node: NodeId,
    /// The life of what was not synced; see [`BootId`].
    pub boot: BootId,
    /// The owner of the root directory of a tree that is made.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

/// What a tree has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Times that an operation waited for blocks. What it wants at one time it waits for once.
    pub waits: u64,
    /// Blocks that it waited for.
    pub wanted: u64,
    /// Blocks retrieved, those included that came along.
    pub retrieved: u64,
    /// Blocks that were wanted and lost.
    pub lost: u64,
    /// Blocks registered.
    pub registered: u64,
    /// Blocks deregistered.
    pub deregistered: u64,
    /// Bytes of memory that blocks between operations take, about.
    pub ram_bytes: u64,
    /// Objects and trees that are still to be taken apart.
    pub backlog: u64,
}

/// A file system of immutable blocks that answers Op.
///
/// # Source
/// PingFS, "How do we turn an unordered stream of blocks into a filesystem?"; names apart from blocks, the table of
/// inodes, and collection by the order of ids are ours.
pub struct BlockTree {
    store: Arc<dyn BlockStore>,
    options: TreeOptions,
    geometry: Geometry,
    clock: Clock,
    cache: Cache,
    changes: Mutex<Changes>,
    state: Mutex<State>,
    opens: Opens,
    counts: Counts,
    observer: Mutex<Option<Observer>>,
    /// A root that another node made, read before it is gone over to.
    prepared: Mutex<Option<Volume>>,
    /// What a thread calls before it waits for the change under way.
    before_waiting: OnceLock<fn()>,
}

/// Who hears of what nobody asked for.
type Observer = Box<dyn FnMut(Unasked) + Send>;

/// What only the change under way may touch.
#[derive(Debug)]
struct Changes {
    ids: Ids,
    reaper: Option<Reaper>,
    /// What is taken apart has blocks that are late: changes do not wait for them.
    is_stuck: bool,
    /// From here on there may be objects that the tree notes as dead and the backlog does not have.
    dead_unread_from: Option<Ino>,
    /// It is not known what the store holds: nothing more is changed.
    is_broken: bool,
}

#[derive(Debug)]
struct State {
    volume: Arc<Volume>,
    sessions: BTreeMap<u64, Session>,
}

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
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who holds it may wait for room, or for other nodes.
    fn changes(&self) -> MutexGuard<'_, Changes> {
        match self.changes.try_lock() {
            Ok(changes) => changes,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                if let Some(tell) = self.before_waiting.get() {
                    tell();
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

    /// Has `tell` called by each thread that is about to wait, for its store or for a change under way. False: the store does not say
    /// so.
    pub fn before_waiting(&self, tell: fn()) -> bool {
        self.store.before_waiting(tell) && self.before_waiting.set(tell).is_ok()
    }

    /// What it has done so far.
    pub fn figures(&self) -> Figures {
        let told = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let dying = self.volume().dying.len();
        Figures {
            waits: told(&self.counts.waits),
            wanted: told(&self.counts.wanted),
            retrieved: told(&self.counts.retrieved),
            lost: told(&self.counts.lost),
            registered: told(&self.counts.registered),
            deregistered: told(&self.counts.deregistered),
            ram_bytes: self.cache.bytes() as u64,
            backlog: (self.opens.backlog() + dying) as u64,
        }
    }

    /// Calls an operation again and again, each time with the blocks that it lacked the time before.
    fn run<R>(&self, shelf: &Shelf<'_>, mut op: impl FnMut() -> Result<R, Halt>) -> Result<R, Halt> {
        for _ in 0..ROUNDS_MAX {
            match op() {
                Err(Halt::Need(wanted)) => self.supply(shelf, &wanted),
                outcome => return outcome,
            }
        }
        Err(Halt::Failed(Errno::Io))
    }

    fn supply(&self, shelf: &Shelf<'_>, wanted: &Wanted) {
        count(&self.counts.waits, 1);
        count(&self.counts.wanted, wanted.ids.len());
        self.store.retrieve(wanted, &mut |id, block| {
            match (block, wanted.ids.contains(&id)) {
                (Ok(bytes), true) => {
                    count(&self.counts.retrieved, 1);
                    shelf.supply(id, Ok(bytes));
                }
                (Ok(bytes), false) => {
                    count(&self.counts.retrieved, 1);
                    shelf.supply_hint(id, bytes);
                }
                (Err(lost), true) => {
                    count(&self.counts.lost, 1);
                    shelf.supply(id, Err(lost));
                }
                // It is not known yet whether anybody needs it.
                (Err(_), false) => {}
            }
        });
        shelf.give_up(wanted);
    }

    /// Reads the tree. What is found belongs to one root; which one, is told with it.
    ///
    /// A reader holds nobody up and keeps no block from being deregistered: where one is gone because the tree has
    /// changed, it begins again with the new root.
    fn look<R>(&self, op: impl Fn(&Trees<'_>) -> Result<R, Halt>) -> Result<(R, Arc<Volume>), Errno> {
        self.look_in(None, op)
    }

    /// The same, in the turn of the caller, if it has it: other nodes overtake who has, too.
    fn look_in<R>(
        &self,
        turn: Option<&Changes>,
        op: impl Fn(&Trees<'_>) -> Result<R, Halt>,
    ) -> Result<(R, Arc<Volume>), Errno> {
        for attempt in 0..=READ_TRIES_MAX {
            // A reader that was overtaken too often lets the changes wait.
            let _changes = (attempt == READ_TRIES_MAX && turn.is_none()).then(|| self.changes());
            let volume = self.volume();
            let shelf = Shelf::new(&self.cache);
            let trees = Trees { volume: &volume, shelf: &shelf, geometry: self.geometry };
            match self.run(&shelf, || op(&trees)) {
                Ok(found) => return Ok((found, volume)),
                Err(Halt::Failed(errno)) => return Err(errno),
                Err(Halt::Lost(_)) if self.volume().id != volume.id => {}
                Err(Halt::Lost(_) | Halt::Need(_)) => return Err(Errno::Io),
            }
        }
        Err(Errno::Io)
    }
}
