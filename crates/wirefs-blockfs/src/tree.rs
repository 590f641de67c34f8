//! The implementation of `Tree`.

use crate::maintenance::Maintenance;
use crate::replies::ForwardedReplies;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use wirefs_blocks::affected::UnrequestedChange;
use wirefs_blocks::id::WriterId;
use wirefs_blocks::store::BlockStore;
use wirefs_blocks::tree::{BlockTree, OpenFault, TreeOptions};
use wirefs_op::message::attach::Watch;
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, FileId, Request, Timestamp, TreePath};
use wirefs_server::{Attached, ExternalChange, LockTable, ObserveChange, Replies, SessionKey, Tree};

/// The default budget of the block cache, in bytes.
const RAM_BYTES_USUAL: usize = 64 * 1024 * 1024;
/// The collection steps in each idle period of the server.
const COLLECT_STEPS: usize = 16;

/// The options for opening a block tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFsOptions {
    /// The boot id reported to clients; it changes when unsynced writes may be lost. See [`BootId`].
    pub boot: BootId,
    /// The budget of the block cache, in bytes. With 0, each operation retrieves all blocks that it needs.
    pub ram_bytes: usize,
    /// The node that writes blocks, if several nodes share the tree.
    pub node: WriterId,
    /// The user as which the tree acts, and the owner of the root directory of a new tree.
    pub uid: u32,
    /// The group as which the tree acts, and that of the root directory of a new tree.
    pub gid: u32,
}

impl BlockFsOptions {
    /// The options of an unshared tree of root with a cache of 64 MiB.
    pub fn new(boot: BootId) -> BlockFsOptions {
        BlockFsOptions { boot, ram_bytes: RAM_BYTES_USUAL, node: WriterId(0), uid: 0, gid: 0 }
    }
}

/// A block tree that a server can export.
#[derive(Debug)]
pub struct BlockFs {
    tree: Arc<BlockTree>,
    locks: LockTable,
    options: BlockFsOptions,
    /// Without the thread, only changes run the garbage collection.
    _maintenance: Option<Maintenance>,
}

impl BlockFs {
    /// Opens the tree in a store; creates an empty one if the store has no root.
    ///
    /// # Errors
    /// The store failed, or holds another kind of data.
    pub fn open(store: Arc<dyn BlockStore>, options: BlockFsOptions) -> Result<BlockFs, OpenFault> {
        let BlockFsOptions { boot, ram_bytes, node, uid, gid } = options;
        let tree =
            BlockTree::open(store, TreeOptions { ram_bytes, node, boot, uid, gid }, Box::new(time_of_day))?;
        let tree = Arc::new(tree);
        BlockTree::follow(&tree);
        let maintenance = Maintenance::start(&tree).ok();
        Ok(BlockFs { tree, locks: LockTable::default(), options, _maintenance: maintenance })
    }

    /// The block tree, for checkpoints and statistics.
    pub fn tree(&self) -> &BlockTree {
        &self.tree
    }
}

impl Tree for BlockFs {
    fn attach(&self, session: SessionKey, path: &TreePath) -> Result<Attached, Errno> {
        let found = self.tree.attach(session.0, path)?;
        self.locks.begin(session);
        Ok(Attached {
            root: found.root,
            uid: self.options.uid,
            gid: self.options.gid,
            acts_for_callers: true,
            read_only: found.is_read_only,
        })
    }

    fn serve(&self, session: SessionKey, request: Request, replies: &mut dyn Replies) {
        match &request {
            Request::Lock(lock) => {
                let stat = || self.tree.stat(session.0, &lock.target);
                self.locks.answer(session, lock, &stat, replies);
            }
            other => self.tree.serve(session.0, other, &mut ForwardedReplies(replies)),
        }
    }

    fn end(&self, session: SessionKey) {
        self.locks.end(session);
        self.tree.end(session.0);
    }

    fn observe(&self, mut notify: ObserveChange) {
        self.tree.observe(Box::new(move |change| {
            notify(match change {
                UnrequestedChange::Object(object) => {
                    ExternalChange::Changed { id: object.id, name: object.name, version: None }
                }
                UnrequestedChange::Everything => ExternalChange::Lost,
            });
        }));
    }

    fn trim_watches(&self, _known: &dyn Fn(&[FileId]) -> Vec<bool>) -> Option<String> {
        self.tree.collect(COLLECT_STEPS);
        None
    }

    fn notify_before_blocking(&self, notify: fn()) -> bool {
        self.tree.before_waiting(notify)
    }

    /// Only requests modify the tree, so leases on the whole file system are safe.
    fn leases(&self) -> Option<Watch> {
        Some(Watch::Filesystem)
    }
}

fn time_of_day() -> Timestamp {
    // A clock before 1970 is unset; file times are then 0.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp { secs: i64::try_from(since.as_secs()).unwrap_or(i64::MAX), nanos: since.subsec_nanos() }
}
