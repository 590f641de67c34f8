//! The contract between the request table and the operations.

use crate::call::CallId;
use wirefs_cache::TreeNodeId;

/// Names and nodes that a change affects.
#[derive(Debug, Default)]
pub(crate) struct Affected {
    pub(crate) names: Vec<(TreeNodeId, Vec<u8>)>,
    pub(crate) nodes: Vec<TreeNodeId>,
}

impl Affected {
    /// One node's attributes or contents.
    pub(crate) fn node(node: TreeNodeId) -> Affected {
        Affected { names: Vec::new(), nodes: vec![node] }
    }

    /// Names, and the objects that have them.
    pub(crate) fn names(names: Vec<(TreeNodeId, Vec<u8>)>) -> Affected {
        Affected { names, nodes: Vec::new() }
    }
}

/// The properties of a request that its continuation decides. The defaults fit a query that a program waits for.
pub(crate) trait Continuation {
    /// Whether the request uses an open file's fd, and its operation takes no fd from the reply.
    fn leaves_fd(&self) -> bool {
        false
    }

    /// The call that waits for this change; `None` if the request is no change, or no call waits.
    fn change_of(&self) -> Option<CallId> {
        None
    }

    /// The names and nodes in doubt if the change's outcome is unknown.
    fn affected(&self) -> Affected {
        Affected::default()
    }

    /// The node whose counter of changes in progress this request increments; `None` if its operation already did.
    fn counted_node(&self) -> Option<TreeNodeId> {
        None
    }

    /// Whether the request waits past the deadline: data that its writer believes to be in transit, and fds and locks that only
    /// this client can release.
    fn outlives_deadline(&self) -> bool {
        false
    }

    /// Prepares for sending the request again. Returns false if that is useless.
    fn restart(&mut self) -> bool {
        true
    }

    /// Notes that the server executed the change over an earlier connection and repeats its reply.
    fn repeat(&mut self) {}
}
