//! Continuations of requests about attributes, extended ones among them, and the targets of symbolic links.

use super::continuation::{Affected, Continuation};
use crate::call::CallId;
use wirefs_cache::TreeNodeId;

/// A getattr.
#[derive(Clone, Debug)]
pub(crate) struct Getting {
    pub(crate) call: CallId,
    pub(crate) node: TreeNodeId,
}

impl Continuation for Getting {
    fn leaves_fd(&self) -> bool {
        true
    }
}

/// A setattr.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) call: CallId,
    pub(crate) node: TreeNodeId,
    pub(crate) size: Option<u64>,
}

impl Continuation for Setting {
    fn leaves_fd(&self) -> bool {
        true
    }

    fn change_of(&self) -> Option<CallId> {
        Some(self.call)
    }

    fn affected(&self) -> Affected {
        Affected::node(self.node)
    }

    fn counted_node(&self) -> Option<TreeNodeId> {
        Some(self.node)
    }
}

/// A readlink.
#[derive(Clone, Debug)]
pub(crate) struct Linkreading {
    pub(crate) call: CallId,
    pub(crate) node: TreeNodeId,
}

impl Continuation for Linkreading {}

/// A request about an extended attribute.
#[derive(Clone, Debug)]
pub(crate) struct XattrAsking {
    pub(crate) call: CallId,
    pub(crate) node: TreeNodeId,
    pub(crate) usage: XattrUse,
}

/// The use of an extended attribute.
#[derive(Clone, Copy, Debug)]
pub(crate) enum XattrUse {
    /// Its value, or the list of all names.
    Value { size_max: u32 },
    /// The value of an attribute of the tree itself. The answer follows the invalidations before it: a getxattr call holds no lock
    /// in the kernel.
    Own { size_max: u32 },
    /// Its modification or removal.
    Change,
}

impl XattrAsking {
    fn changed(&self) -> Option<TreeNodeId> {
        matches!(self.usage, XattrUse::Change).then_some(self.node)
    }
}

impl Continuation for XattrAsking {
    fn change_of(&self) -> Option<CallId> {
        self.changed().map(|_| self.call)
    }

    fn affected(&self) -> Affected {
        self.changed().map(Affected::node).unwrap_or_default()
    }
}
