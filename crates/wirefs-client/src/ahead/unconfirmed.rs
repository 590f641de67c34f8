//! Changes that are answered and not confirmed.

use wirefs_cache::TreeNodeId;
use wirefs_op::TreePath;

/// A change that is answered and not confirmed.
#[derive(Clone, Debug)]
pub(crate) struct Unconfirmed {
    /// The objects that it changes; each is held, and being written.
    pub(crate) nodes: Vec<TreeNodeId>,
    /// The names that it changes.
    pub(crate) names: Vec<(TreeNodeId, Vec<u8>)>,
    /// What it makes.
    pub(crate) makes: Option<Made>,
    /// The file that it opens, and the open file that gets the server's fd.
    pub(crate) opens: Option<(TreeNodeId, crate::call::Handle)>,
    pub(crate) path: TreePath,
    pub(crate) what: &'static str,
}

/// An object that the server does not have yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    pub(crate) node: TreeNodeId,
    /// The open file that made it, which gets the server's fd.
    pub(crate) handle: Option<crate::call::Handle>,
}
