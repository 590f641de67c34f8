//! `wirefs echo --node`: one tree on several machines.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::Result;
use serde::{Deserialize, Serialize};
use wirefs_carrier::tls::read_secret;
use wirefs_pingfs::nodes::{KEY_BYTES_MIN, NodesStatus, key_of};
use wirefs_pingfs::{NodeOptions, ReplicatedStore};

use super::resolve;
use crate::arguments::EchoMount;
use crate::failure::failure;
use crate::terminal::note;

/// Returns the options of this node; `None` without other nodes.
pub(super) fn options(arguments: &EchoMount) -> Result<Option<NodeOptions>> {
    let (Some(node), Some(file)) = (arguments.node, &arguments.key) else { return Ok(None) };
    let secret = read_secret(file)?;
    let key = key_of(&secret).ok_or_else(|| {
        failure(
            format!("{} is no key: it has {} bytes", file.display(), secret.len()),
            format!("make a file of at least {KEY_BYTES_MIN} bytes, for example with `(umask 077; head -c 32 /dev/urandom > FILE)`, and copy it to all nodes"),
        )
    })?;
    let peers = arguments.peers.iter().map(|peer| ipv4(peer)).collect::<Result<_>>()?;
    Ok(Some(NodeOptions { node, peers, key }))
}

fn ipv4(peer: &str) -> Result<Ipv4Addr> {
    match resolve(peer)?.ip() {
        IpAddr::V4(address) => Ok(address),
        IpAddr::V6(_) => {
            Err(failure(format!("{peer} has no IPv4 address"), "name each --peer by its IPv4 address"))
        }
    }
}

/// Leaves the other nodes. Returns `true` if there are any, which keep the data.
pub(super) fn leave(nodes: &ReplicatedStore) -> bool {
    let has_others = has_others(&nodes.nodes());
    if !nodes.leave() {
        note!("wirefs: the other nodes did not confirm in time that this node leaves; they detect it later");
    }
    has_others
}

fn has_others(status: &NodesStatus) -> bool {
    status.nodes.iter().any(|other| other.is_member && other.node != status.node)
}

/// The nodes that share a mount's tree.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Nodes {
    pub(crate) node: u16,
    /// The node with the write token.
    pub(crate) pen: u16,
    /// The number of the view.
    pub(crate) view: u64,
    /// The current root; equal on all nodes with the same tree.
    pub(crate) root: Option<String>,
    pub(crate) root_age_ms: u64,
    pub(crate) nodes: Vec<Node>,
    /// Copies of blocks sent to and received from other nodes.
    pub(crate) copied: u64,
    pub(crate) taken: u64,
}

/// One of the nodes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Node {
    pub(crate) node: u16,
    pub(crate) is_member: bool,
    pub(crate) address: Option<String>,
    /// The time since the last message from it.
    pub(crate) heard_ms: Option<u64>,
}

impl Nodes {
    pub(super) fn of(status: &NodesStatus) -> Nodes {
        let ms = |span: std::time::Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        Nodes {
            node: status.node,
            pen: status.holder,
            view: status.view,
            root: status.root.map(|(counter, node)| format!("{counter}.{node}")),
            root_age_ms: ms(status.root_age),
            nodes: status
                .nodes
                .iter()
                .map(|node| Node {
                    node: node.node,
                    is_member: node.is_member,
                    address: node.address.map(|address| address.to_string()),
                    heard_ms: node.last_received_ago.map(ms),
                })
                .collect(),
            copied: status.copies_sent,
            taken: status.copies_received,
        }
    }

    /// Returns whether other members remain when this node leaves.
    pub(super) fn has_others(&self) -> bool {
        self.nodes.iter().any(|other| other.is_member && other.node != self.node)
    }

    /// Returns the lines of the status.
    pub(super) fn lines(&self) -> Vec<String> {
        let list = |are_members: bool| {
            let nodes = self.nodes.iter().filter(|node| node.is_member == are_members);
            let names = nodes.map(|node| match &node.address {
                Some(address) => format!("{} ({address})", node.node),
                None => format!("{} (this one)", node.node),
            });
            names.collect::<Vec<_>>().join(", ")
        };
        let gone = list(false);
        let gone = if gone.is_empty() { String::new() } else { format!("; not with them: {gone}") };
        vec![
            format!("nodes       {}{gone}", list(true)),
            format!(
                "together    node {} has the write token; root {} for {}; {} copies sent, {} taken",
                self.pen,
                self.root.as_deref().unwrap_or("none"),
                crate::status::span(std::time::Duration::from_millis(self.root_age_ms)),
                self.copied,
                self.taken
            ),
        ]
    }
}
