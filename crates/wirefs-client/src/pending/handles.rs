//! Continuations of requests that open and close files at the server.

use super::continuation::{Affected, Continuation};
use crate::call::{CallId, Handle, OpenHow};
use wirefs_cache::TreeNodeId;
use wirefs_op::FileId;
use wirefs_op::message::target::Fd;

/// An open.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) call: CallId,
    pub(crate) node: TreeNodeId,
    pub(crate) how: OpenHow,
    /// Whether it truncates the file.
    pub(crate) cuts: bool,
    /// The name by which it is opened, if that is needed later.
    pub(crate) place: Option<(TreeNodeId, Vec<u8>)>,
}

impl Opening {
    fn changed(&self) -> Option<TreeNodeId> {
        self.cuts.then_some(self.node)
    }
}

impl Continuation for Opening {
    fn change_of(&self) -> Option<CallId> {
        self.cuts.then_some(self.call)
    }

    fn affected(&self) -> Affected {
        self.changed().map(Affected::node).unwrap_or_default()
    }

    fn counted_node(&self) -> Option<TreeNodeId> {
        self.changed()
    }
}

/// A request for an fd, for a file that was opened without one.
#[derive(Clone, Debug)]
pub(crate) struct Acquiring {
    pub(crate) handle: Handle,
    pub(crate) id: Option<FileId>,
    /// The node whose recall is answered once the fd is here.
    pub(crate) recalled: Option<TreeNodeId>,
}

impl Continuation for Acquiring {}

/// A prefetch of one file's contents. The node is held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prefetching {
    pub(crate) node: TreeNodeId,
}

impl Continuation for Prefetching {
    fn restart(&mut self) -> bool {
        false
    }
}

/// The close of an fd; no call waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closing {
    pub(crate) fd: Fd,
}

impl Continuation for Closing {
    fn outlives_deadline(&self) -> bool {
        true
    }
}
