//! Inputs, outputs, views and counters of a [`crate::Node`].

use crate::config::NodeTrust;
use crate::key::{NodeKey, NodeName};
use crate::member::Liveness;
use crate::record::NodeRecord;
use core::net::SocketAddr;
use wirefs_op::Time;

/// An event for a node.
#[derive(Clone, Copy, Debug)]
pub enum NodeInput<'a> {
    /// A packet arrived.
    Packet {
        /// The source address.
        from: SocketAddr,
        /// The packet.
        bytes: &'a [u8],
    },
    /// Time has passed.
    Tick,
    /// Load and free space of this machine. Published only if they changed noticeably, at most once in
    /// [`crate::limits::LOAD_INTERVAL`].
    Load {
        /// Load average in hundredths: processes that ran or were runnable.
        load_percent: u16,
        /// Free space, in bytes.
        free_bytes: u64,
        /// Total space, in bytes.
        all_bytes: u64,
    },
    /// Addresses of nodes from a registry; they replace the previous ones. This node announces itself there until it
    /// gets an answer. Nothing else in the registry is trusted.
    Registered(&'a [SocketAddr]),
    /// The keys that may join from now on. Packets of a member whose key is not among them are ignored.
    Trust(&'a NodeTrust),
    /// This node leaves.
    Leave,
}

/// The destination of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// All nodes on the segment.
    Segment,
    /// One address.
    Address(SocketAddr),
}

/// An effect that the driver carries out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeOutput {
    /// Send a packet.
    Send {
        /// The destination.
        to: Destination,
        /// The packet.
        packet: Vec<u8>,
    },
    /// The state or the record of another node has changed.
    Changed {
        /// The node.
        key: NodeKey,
        /// Its new state.
        state: Liveness,
    },
    /// Another node holds this node's name and keeps it. This node should leave, or start again under another name.
    NameTaken {
        /// The name.
        name: NodeName,
        /// The node that holds it.
        holder: NodeKey,
    },
}

/// One node of the table.
#[derive(Clone, Copy, Debug)]
pub struct NodeView<'a> {
    /// Its signed statement about itself.
    pub record: &'a NodeRecord,
    /// Its liveness.
    pub state: Liveness,
    /// The time of the last change of `state`.
    pub since: Time,
    /// Its name resolves to it.
    pub holds_name: bool,
    /// It is this node.
    pub is_own: bool,
    /// Source address of its last packet.
    pub last_source: Option<SocketAddr>,
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounters {
    /// Packets sent.
    pub sent: u64,
    /// Packets accepted.
    pub received: u64,
    /// Packets that could not be parsed.
    pub malformed: u64,
    /// Packets or records with a wrong signature.
    pub forged: u64,
    /// Packets rejected by the replay window.
    pub replayed: u64,
    /// Records older than the known one.
    pub stale: u64,
    /// Packets and records of untrusted keys, and packets without a record of their unknown sender.
    pub untrusted: u64,
    /// Records of new nodes that did not fit the table.
    pub table_full: u64,
    /// Nodes that this node began to suspect.
    pub suspicions: u64,
    /// Times that this node raised its incarnation to refute a suspicion.
    pub refutations: u64,
    /// Protocol periods: probe intervals that this node has run.
    pub probe_periods: u64,
}
