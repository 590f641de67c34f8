//! The block tree behind the trait that all trees have.

use crate::answers::Passed;
use crate::keeping::Keeping;
use crate::locks::LockTable;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use wirefs_blocks::id::NodeId;
use wirefs_blocks::store::BlockStore;
use wirefs_blocks::touch::Unasked;
use wirefs_blocks::tree::{BlockTree, OpenFault, TreeOptions};
use wirefs_op::message::attach::Watch;
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, FileId, Request, Timestamp, TreePath};
use wirefs_server::{Attached, Outside, Replies, SessionKey, Tell, Tree};

/// Memory for blocks between operations, in bytes, unless another amount is asked for.
const RAM_BYTES_USUAL: usize = 64 * 1024 * 1024;
/// Steps of collection that are done whenever the server has a moment.
const COLLECT_STEPS: usize = 16;

/// How a block tree is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFsOptions {
    /// The life of what was not synced; see [`BootId`].
    pub boot: BootId,
    /// Memory for blocks between operations, in bytes. With none, each operation retrieves all that it needs.
    pub ram_bytes: usize,
    /// Who makes the blocks, where several machines make them.
    pub node: NodeId,
    /// The user that the tree acts as, and the owner of the root directory of a tree that is made.
    pub uid: u32,
    /// The group likewise.
    pub gid: u32,
}

impl BlockFsOptions {
    /// A tree of one machine, root's, with 64 MiB of memory.
    pub fn new(boot: BootId) -> BlockFsOptions {
        BlockFsOptions { boot, ram_bytes: RAM_BYTES_USUAL, node: NodeId(0), uid: 0, gid: 0 }
    }
}

/// A block tree that can be served.
#[derive(Debug)]
pub struct BlockFs {
    tree: Arc<BlockTree>,
    locks: LockTable,
    options: BlockFsOptions,
    /// Without it, collection goes on with the changes alone.
    _keeping: Option<Keeping>,
}

impl BlockFs {
    /// Opens the tree that a store holds; in a store without a root, an empty one is made.
    ///
    /// # Errors
    /// The store fails, or holds something else.
    pub fn open(store: Arc<dyn BlockStore>, options: BlockFsOptions) -> Result<BlockFs, OpenFault> {
        let BlockFsOptions { boot, ram_bytes, node, uid, gid } = options;
        let tree =
            BlockTree::open(store, TreeOptions { ram_bytes, node, boot, uid, gid }, Box::new(time_of_day))?;
        let tree = Arc::new(tree);
        BlockTree::follow(&tree);
        let keeping = Keeping::start(&tree).ok();
        Ok(BlockFs { tree, locks: LockTable::default(), options, _keeping: keeping })
    }

    /// The block tree itself: its checkpoints, its figures.
    pub fn tree(&self) -> &BlockTree {
        &self.tree
    }

    pub(crate) fn locks(&self) -> &LockTable {
        &self.locks
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
            Request::Lock(lock) => self.lock(session, lock, replies),
            other => self.tree.serve(session.0, other, &mut Passed(replies)),
        }
    }

    fn end(&self, session: SessionKey) {
        self.locks.end(session);
        self.tree.end(session.0);
    }

    fn observe(&self, mut tell: Tell) {
        self.tree.observe(Box::new(move |unasked| {
            tell(match unasked {
                Unasked::Changed(touch) => Outside::Changed { id: touch.id, name: touch.name, version: None },
                Unasked::Everything => Outside::Lost,
            });
        }));
    }

    fn tend(&self, _known: &dyn Fn(&[FileId]) -> Vec<bool>) -> Option<String> {
        self.tree.collect(COLLECT_STEPS);
        None
    }

    fn before_waiting(&self, tell: fn()) -> bool {
        self.tree.before_waiting(tell)
    }

    /// Nobody changes anything here but by a request.
    fn leases(&self) -> Option<Watch> {
        Some(Watch::Filesystem)
    }
}

fn time_of_day() -> Timestamp {
    // Before 1970 it is no time for a file; the clock is set later.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp { secs: i64::try_from(since.as_secs()).unwrap_or(i64::MAX), nanos: since.subsec_nanos() }
}
