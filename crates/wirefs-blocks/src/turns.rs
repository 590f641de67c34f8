//! Turns: how several nodes change one tree, each with all of its blocks.
//!
//! ```text
//!   change:     begin ──> the root to begin with ──> register ──> agree ──> all have it, or it came to nothing: once more
//!   elsewhere:  its blocks come ──> prepare ──> go_over
//! ```

use std::sync::Weak;

use crate::id::BlockId;
use crate::store::StoreFault;

/// What a store offers that shares its tree with other nodes' stores.
pub trait Turns: Send + Sync {
    /// Waits until nobody else makes a change, and says which root this one begins with; none where there is no tree yet. The
    /// followers have gone over to it.
    ///
    /// # Errors
    /// The others cannot be reached, or this node was left out.
    fn begin(&self) -> Result<Option<BlockId>, StoreFault>;

    /// Has all nodes take a root whose blocks are registered, in place of [`switch_root`](crate::store::BlockStore::switch_root),
    /// and ends the turn. `doomed`: what it does not reach any more, which is deregistered everywhere. True: all that matter have
    /// it, and it counts. False: it came to nothing, and its blocks are deregistered.
    ///
    /// # Errors
    /// It is not known whether it counts.
    fn agree(&self, root: BlockId, doomed: &[BlockId]) -> Result<bool, StoreFault>;

    /// Ends a turn; without [`agree`](Self::agree), in which nothing was changed.
    fn end(&self);

    /// Has a tree go over to what others make of it.
    fn follow(&self, follower: Weak<dyn Follower>);
}

/// A tree that others change, too.
pub trait Follower: Send + Sync {
    /// Reads what is to be known of a root, so that it can be gone over to without waiting. False: it cannot be read.
    fn prepare(&self, root: BlockId) -> bool;

    /// Goes over to a root that was read; whoever reads finds it from now on. False: it is to be prepared first. Never waits for a
    /// block: the caller may be the one who brings it.
    fn go_over(&self, root: BlockId) -> bool;
}
