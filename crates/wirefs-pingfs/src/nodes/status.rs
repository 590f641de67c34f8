//! Status of the nodes.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use super::ReplicatedStore;

/// Status of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeReport {
    /// The number of the node.
    pub node: u16,
    /// Its address; `None` for this node.
    pub address: Option<Ipv4Addr>,
    /// Time since its last message; `None` for this node.
    pub last_received_ago: Option<Duration>,
    /// Whether the node is a member.
    pub is_member: bool,
}

/// Status of all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodesStatus {
    /// The number of this node.
    pub node: u16,
    /// The holder of the write token: it makes changes now, or did so last.
    pub holder: u16,
    /// The number of the current view.
    pub view: u64,
    /// Time since the current root arrived.
    pub root_age: Duration,
    /// The counter of the root's id, and the node that made it; equal on all nodes with the same tree.
    pub root: Option<(u64, u16)>,
    /// The members, and the nodes that sent a message.
    pub nodes: Vec<NodeReport>,
    /// Copies of blocks sent to other nodes.
    pub copies_sent: u64,
    /// Copies of blocks received from them.
    pub copies_received: u64,
}

impl ReplicatedStore {
    /// Returns the status of all nodes.
    pub fn nodes(&self) -> NodesStatus {
        let replica = self.shared.replica();
        let (machine, now) = (&replica.machine, Instant::now());
        let me = machine.id();
        let others = replica.channel.peers().map(|(id, address)| NodeReport {
            node: id.0,
            address: Some(address.into()),
            last_received_ago: replica.last_received.get(&id).map(|at| now.saturating_duration_since(*at)),
            is_member: machine.members().contains(&id),
        });
        let own =
            NodeReport { node: me.0, address: None, last_received_ago: None, is_member: machine.is_member() };
        let mut nodes: Vec<NodeReport> = others.chain([own]).collect();
        nodes.sort_by_key(|node| node.node);
        NodesStatus {
            node: me.0,
            holder: machine.holder().0,
            view: machine.view(),
            root_age: now.saturating_duration_since(replica.root_since),
            root: machine.root().and_then(crate::store::unpacked).map(|root| (root.counter(), root.node().0)),
            nodes,
            copies_sent: replica.copies_sent,
            copies_received: replica.copies_received,
        }
    }
}
