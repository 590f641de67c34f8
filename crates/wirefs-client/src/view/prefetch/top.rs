//! The budget of the prefetch streams at the top of the tree.

use wirefs_cache::TreeNodeId;

/// The remaining budget.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Top {
    pub(crate) bytes: u32,
    pub(crate) entries: u32,
    pub(crate) streams: u8,
    /// Where the last one began.
    pub(crate) at: TreeNodeId,
}
