//! Continuations of requests about names.

use super::continuation::{Affected, Continuation};
use crate::call::{CallId, OpenHow};
use wirefs_cache::TreeNodeId;
use wirefs_op::Time;

/// A lookup.
#[derive(Clone, Debug)]
pub(crate) struct Looking {
    pub(crate) call: CallId,
    pub(crate) parent: TreeNodeId,
    pub(crate) name: Vec<u8>,
    /// The time of the first request.
    pub(crate) asked: Time,
    pub(crate) tries: u8,
}

impl Looking {
    /// The name, if this call looks it up.
    pub(crate) fn name_for(&self, call: CallId) -> Option<(TreeNodeId, Vec<u8>)> {
        (self.call == call).then(|| (self.parent, self.name.clone()))
    }
}

impl Continuation for Looking {}

/// The creation of an object.
#[derive(Clone, Debug)]
pub(crate) struct Making {
    pub(crate) call: CallId,
    pub(crate) parent: TreeNodeId,
    /// `None` for a file without a name.
    pub(crate) name: Option<Vec<u8>>,
    pub(crate) open: Option<OpenHow>,
    /// The server executed it over an earlier connection: the reply is older than all others on this connection.
    pub(crate) is_repeated: bool,
}

impl Making {
    /// The new name.
    pub(crate) fn place(&self) -> Option<(TreeNodeId, Vec<u8>)> {
        self.name.clone().map(|name| (self.parent, name))
    }
}

impl Continuation for Making {
    fn change_of(&self) -> Option<CallId> {
        Some(self.call)
    }

    fn affected(&self) -> Affected {
        Affected::names(self.place().into_iter().collect())
    }

    fn repeat(&mut self) {
        self.is_repeated = true;
    }
}

/// The removal of a name.
#[derive(Clone, Debug)]
pub(crate) struct Removing {
    pub(crate) call: CallId,
    pub(crate) parent: TreeNodeId,
    pub(crate) name: Vec<u8>,
    /// The node of that name when the removal began.
    pub(crate) node: Option<TreeNodeId>,
}

impl Removing {
    /// The name.
    pub(crate) fn place(&self) -> (TreeNodeId, Vec<u8>) {
        (self.parent, self.name.clone())
    }
}

impl Continuation for Removing {
    fn change_of(&self) -> Option<CallId> {
        Some(self.call)
    }

    fn affected(&self) -> Affected {
        Affected::names(vec![self.place()])
    }
}

/// A rename.
#[derive(Clone, Debug)]
pub(crate) struct Renaming {
    pub(crate) call: CallId,
    pub(crate) from: (TreeNodeId, Vec<u8>),
    pub(crate) to: (TreeNodeId, Vec<u8>),
    pub(crate) flags: u32,
    /// The node that is moved, if known: its attributes change.
    pub(crate) moved: Option<TreeNodeId>,
}

impl Renaming {
    /// Both names.
    pub(crate) fn places(&self) -> [(TreeNodeId, Vec<u8>); 2] {
        [self.from.clone(), self.to.clone()]
    }

    /// The new name.
    pub(crate) fn replaced(&self) -> (TreeNodeId, Vec<u8>) {
        self.to.clone()
    }
}

impl Continuation for Renaming {
    fn change_of(&self) -> Option<CallId> {
        Some(self.call)
    }

    fn affected(&self) -> Affected {
        Affected::names(self.places().to_vec())
    }

    fn counted_node(&self) -> Option<TreeNodeId> {
        self.moved
    }
}

/// The creation of a hard link.
#[derive(Clone, Debug)]
pub(crate) struct Linking {
    pub(crate) call: CallId,
    pub(crate) node: TreeNodeId,
    pub(crate) parent: TreeNodeId,
    pub(crate) name: Vec<u8>,
}

impl Linking {
    /// The new name.
    pub(crate) fn place(&self) -> (TreeNodeId, Vec<u8>) {
        (self.parent, self.name.clone())
    }
}

impl Continuation for Linking {
    fn change_of(&self) -> Option<CallId> {
        Some(self.call)
    }

    fn affected(&self) -> Affected {
        Affected { names: vec![self.place()], nodes: vec![self.node] }
    }

    fn counted_node(&self) -> Option<TreeNodeId> {
        Some(self.node)
    }
}
