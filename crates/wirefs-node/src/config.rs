//! What a node is told at its start.

use crate::key::{Name, NodeKey};
use crate::record::{EtherCard, Export};
use crate::seal::Signer;
use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeSet;
use std::time::Duration;

/// What a node is told at its start.
#[derive(Debug)]
pub struct Config {
    /// Its key.
    pub key: NodeKey,
    /// Signs with that key.
    pub signer: Signer,
    /// What it wants to be called.
    pub name: Name,
    /// The time of day, in milliseconds since 1970. A later start must have a later one.
    pub born: u64,
    /// Where it listens, over UDP and TCP.
    pub port: u16,
    /// Where it can be reached, the best first.
    pub addresses: Vec<IpAddr>,
    /// What it serves.
    pub exports: Vec<Export>,
    /// Where it answers Ethernet packets.
    pub cards: Vec<EtherCard>,
    /// Nodes on other segments. They are told that this one is here until they answer.
    pub peers: Vec<SocketAddr>,
    /// Whose word counts.
    pub trust: Trust,
    /// How fast it notices.
    pub pace: Pace,
    /// Chance for this run.
    pub seed: u64,
}

/// Whose word counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Whoever can send packets to the node.
    Anyone,
    /// Who has one of these keys.
    Only(BTreeSet<NodeKey>),
}

impl Trust {
    pub(crate) fn admits(&self, key: &NodeKey) -> bool {
        match self {
            Trust::Anyone => true,
            Trust::Only(keys) => keys.contains(key),
        }
    }
}

/// How fast a node notices that another is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Between two probes of this node's.
    pub turn: Duration,
    /// How long the answer to a probe may take before others are asked to probe too.
    pub patience: Duration,
    /// How long theirs may take before the node is suspected.
    pub helped_patience: Duration,
    /// How long a suspect has to say that it lives.
    pub suspicion: Duration,
    /// How many others are asked.
    pub helpers: usize,
}

impl Default for Pace {
    /// Dead within 2 s of its end, on a segment of a few nodes.
    fn default() -> Pace {
        Pace {
            turn: Duration::from_millis(250),
            patience: Duration::from_millis(150),
            helped_patience: Duration::from_millis(250),
            suspicion: Duration::from_millis(1_000),
            helpers: 3,
        }
    }
}
