//! What is known of the nodes, for people and programs.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use super::CommonStore;

/// One node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeReport {
    /// Its number.
    pub node: u16,
    /// Where it is; none of this one.
    pub address: Option<Ipv4Addr>,
    /// How long ago it was heard of; none of this one.
    pub heard: Option<Duration>,
    /// Whether it has the tree together with the others.
    pub is_member: bool,
}

/// What is known of the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodesStatus {
    /// This one.
    pub node: u16,
    /// Who holds the pen: makes changes now, or did so last.
    pub holder: u16,
    /// How often it changed who is there.
    pub view: u64,
    /// For how long the present root has been the root.
    pub root_age: Duration,
    /// The counter of its id, and the node that made it; the same on all nodes that have the same tree.
    pub root: Option<(u64, u16)>,
    /// All that are members or were heard of.
    pub nodes: Vec<NodeReport>,
    /// Copies of blocks sent to others.
    pub copied: u64,
    /// Copies that came from them.
    pub taken: u64,
}

impl CommonStore {
    /// Who is there.
    pub fn nodes(&self) -> NodesStatus {
        let desk = self.commons.desk();
        let (machine, now) = (&desk.machine, Instant::now());
        let me = machine.me();
        let others = desk.post.pals().map(|(id, address)| NodeReport {
            node: id.0,
            address: Some(address.into()),
            heard: desk.heard.get(&id).map(|at| now.saturating_duration_since(*at)),
            is_member: machine.members().contains(&id),
        });
        let own = NodeReport { node: me.0, address: None, heard: None, is_member: machine.is_member() };
        let mut nodes: Vec<NodeReport> = others.chain([own]).collect();
        nodes.sort_by_key(|node| node.node);
        NodesStatus {
            node: me.0,
            holder: machine.holder().0,
            view: machine.view(),
            root_age: now.saturating_duration_since(desk.root_at),
            root: machine.root().and_then(crate::store::unpacked).map(|root| (root.counter(), root.node().0)),
            nodes,
            copied: desk.copied,
            taken: desk.taken,
        }
    }
}
