//! The configuration of a node.

use std::collections::BTreeSet;

use ring::signature::Ed25519KeyPair;

use crate::address::{CardAddress, PeerKey};

/// A network card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Card {
    /// The hardware address.
    pub address: CardAddress,
    /// The MTU: bytes after the Ethernet header.
    pub packet_bytes: usize,
}

/// The peers that a node accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerTrust {
    /// Any peer that proves its key; the driver decides.
    Anyone,
    /// The peers with these keys.
    Only(BTreeSet<PeerKey>),
}

impl PeerTrust {
    pub(crate) fn covers(&self, key: PeerKey) -> bool {
        match self {
            PeerTrust::Anyone => true,
            PeerTrust::Only(keys) => keys.contains(&key),
        }
    }
}

/// The configuration of a node.
#[derive(Debug)]
pub struct CircuitConfig {
    /// The key pair of the node.
    pub identity: Ed25519KeyPair,
    /// 32 random bytes, new for each run. Cookies and initial group generations derive from them.
    pub secret: [u8; 32],
    /// The network cards.
    pub cards: Vec<Card>,
    /// The peers that the node accepts.
    pub trust: PeerTrust,
}
