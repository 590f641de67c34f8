//! Configuration of a node.

use crate::key::{NodeKey, NodeName};
use crate::record::{EtherCard, NodeExport};
use crate::signature::Signer;
use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeSet;
use std::time::Duration;

/// Configuration of a node.
#[derive(Debug)]
pub struct NodeConfig {
    /// Its key.
    pub key: NodeKey,
    /// Signs with that key.
    pub signer: Signer,
    /// The name it claims.
    pub name: NodeName,
    /// Start time in milliseconds since 1970. A later start must have a later one.
    pub born: u64,
    /// UDP and TCP port.
    pub port: u16,
    /// Its addresses, best first.
    pub addresses: Vec<IpAddr>,
    /// Its exports.
    pub exports: Vec<NodeExport>,
    /// Cards on which it answers Ethernet frames.
    pub cards: Vec<EtherCard>,
    /// Nodes on other segments. This node announces itself there until it gets an answer.
    pub peers: Vec<SocketAddr>,
    /// The keys that may join.
    pub trust: NodeTrust,
    /// Intervals and timeouts of failure detection.
    pub timing: ProbeTiming,
    /// Seed of the pseudorandom generator.
    pub seed: u64,
}

/// The keys that may join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeTrust {
    /// Any node that can send packets to this one.
    Anyone,
    /// Nodes with one of these keys.
    Only(BTreeSet<NodeKey>),
}

impl NodeTrust {
    pub(crate) fn admits(&self, key: &NodeKey) -> bool {
        match self {
            NodeTrust::Anyone => true,
            NodeTrust::Only(keys) => keys.contains(key),
        }
    }
}

/// Intervals and timeouts of failure detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeTiming {
    /// The protocol period: the interval between two probes.
    pub probe_interval: Duration,
    /// Timeout of a direct ping; then ping requests are sent.
    pub ack_timeout: Duration,
    /// Timeout of the ping requests; then the node is suspected.
    pub indirect_timeout: Duration,
    /// Time that a suspect has to refute.
    pub suspicion_timeout: Duration,
    /// Number of ping requests (SWIM: k).
    pub helpers: usize,
}

impl Default for ProbeTiming {
    /// Detects a failure within 2 s, on a segment of a few nodes.
    fn default() -> ProbeTiming {
        ProbeTiming {
            probe_interval: Duration::from_millis(250),
            ack_timeout: Duration::from_millis(150),
            indirect_timeout: Duration::from_millis(250),
            suspicion_timeout: Duration::from_millis(1_000),
            helpers: 3,
        }
    }
}
