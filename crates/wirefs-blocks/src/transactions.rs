//! Transactions: serialized changes of one tree by several nodes, each with a full replica of its blocks.
//!
//! ```text
//!   writer:    begin ──> current root ──> register ──> commit ──> committed, or aborted: begin again
//!   replicas:  its blocks arrive ──> prepare ──> switch_to
//! ```

use std::sync::Weak;

use crate::id::BlockId;
use crate::store::StoreFault;

/// Transactions of a store that is replicated among nodes.
pub trait Transactions: Send + Sync {
    /// Waits for the right to change the tree, and returns the root to start from; `None` if there is no tree
    /// yet. Followers have switched to this root.
    ///
    /// # Errors
    /// The other nodes are unreachable, or this node was expelled.
    fn begin(&self) -> Result<Option<BlockId>, StoreFault>;

    /// Replicates a new root whose blocks are registered, and ends the transaction. Replaces
    /// [`switch_root`](crate::store::BlockStore::switch_root). The blocks in `free_list` are no longer
    /// reachable and are deregistered on all nodes. Returns `true` if the root is committed, `false` if it is
    /// aborted and its blocks are deregistered.
    ///
    /// # Errors
    /// The outcome is unknown.
    fn commit(&self, root: BlockId, free_list: &[BlockId]) -> Result<bool, StoreFault>;

    /// Ends a transaction. Without [`commit`](Self::commit), nothing was changed.
    fn end(&self);

    /// Registers a tree that switches to the roots of other nodes.
    fn follow(&self, follower: Weak<dyn RootFollower>);
}

/// A tree that follows the roots of other nodes.
pub trait RootFollower: Send + Sync {
    /// Reads the blocks that [`switch_to`](Self::switch_to) requires. Returns `false` if they cannot be read.
    fn prepare(&self, root: BlockId) -> bool;

    /// Switches readers to a prepared root. Returns `false` if it is not prepared. Never waits for a block,
    /// since the caller may be the thread that delivers it.
    fn switch_to(&self, root: BlockId) -> bool;
}
