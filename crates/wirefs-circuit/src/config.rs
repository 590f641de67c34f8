//! What a node is made of.

use std::collections::BTreeSet;

use ring::signature::Ed25519KeyPair;

use crate::address::{Address, NodeKey};

/// One network card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Card {
    /// Its hardware address.
    pub address: Address,
    /// Bytes that it carries behind an Ethernet header (its MTU).
    pub packet_bytes: usize,
}

/// Whose word counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Everybody who proves a key; the driver looks at it.
    Anyone,
    /// These.
    Only(BTreeSet<NodeKey>),
}

impl Trust {
    pub(crate) fn covers(&self, key: NodeKey) -> bool {
        match self {
            Trust::Anyone => true,
            Trust::Only(keys) => keys.contains(&key),
        }
    }
}

/// What a node is made of.
#[derive(Debug)]
pub struct Config {
    /// Its key pair: who it is.
    pub identity: Ed25519KeyPair,
    /// 32 bytes by chance, new for each run: cookies and first group numbers follow from them.
    pub secret: [u8; 32],
    /// Its cards.
    pub cards: Vec<Card>,
    /// Who may be its peer.
    pub trust: Trust,
}
