//! A node's signed statement about itself, which others can relay.
//!
//! ```text
//! version 1 · key 32 · born 8 · incarnation 8 · edition 8 · flags 1 · name text · port 2
//! · addresses 1 + n × (family 1, 4 or 16) · exports 1 + n × (name text, flags 1) · load 2 · free 8 · all 8
//! · cards, if the flag is set: 1 + n × (hardware 6, network 4, prefix 1) · signature 64
//! ```

use crate::key::{NodeKey, NodeName};
use crate::limits::{ADDRESSES_MAX, CARDS_MAX, EXPORTS_MAX, RECORD_BYTES_MAX};
use crate::signature::{SIGNATURE_BYTES, Signer, is_signed};
use crate::wire::{Reader, put_address, put_text};
use core::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The prefix of every signed record.
const PURPOSE: &[u8] = b"wirefs node record\0";
const VERSION: u8 = 1;
const LEAVING: u8 = 1;
const HAS_CARDS: u8 = 2;
const READ_ONLY: u8 = 1;
const ACTS_FOR_CALLERS: u8 = 2;

/// A tree that a node serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeExport {
    /// Its name.
    pub name: NodeName,
    /// All changes are rejected.
    pub read_only: bool,
    /// The server checks permissions as the calling user, so that all users of a machine may have access.
    pub acts_for_callers: bool,
}

/// A network card on which a node answers Ethernet frames of our protocol, beside IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EtherCard {
    /// Its hardware address.
    pub hardware: [u8; 6],
    /// Its IP network. Cards in the same network are assumed to be on the same segment.
    pub network: Ipv4Addr,
    /// The prefix length of the network, in bits.
    pub prefix: u8,
}

impl EtherCard {
    /// Returns whether both cards are in the same network.
    pub fn is_same_network(&self, other: &EtherCard) -> bool {
        (self.network, self.prefix) == (other.network, other.prefix)
    }
}

/// Pairs cards of two nodes that are in the same network, each at most once, in the order of the records. Returns
/// indexes into `ours` with the partner in `theirs`.
pub fn pair_cards<'a>(ours: &'a [EtherCard], theirs: &'a [EtherCard]) -> Vec<(usize, &'a EtherCard)> {
    let mut free: Vec<&EtherCard> = theirs.iter().collect();
    let mut pair_cards = Vec::new();
    for (index, card) in ours.iter().enumerate() {
        if let Some(at) = free.iter().position(|other| card.is_same_network(other)) {
            pair_cards.push((index, free.remove(at)));
        }
    }
    pair_cards
}

/// A node's statement about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRecord {
    /// The node.
    pub key: NodeKey,
    /// Its name.
    pub name: NodeName,
    /// Start time in milliseconds since 1970 by the node's clock. Of two nodes that claim a name at once, the earlier
    /// gets it.
    pub born: u64,
    /// Grows with each start, and whenever the node refutes a suspicion.
    pub incarnation: u64,
    /// Grows with each change within an incarnation.
    pub edition: u64,
    /// The node leaves.
    pub leaving: bool,
    /// UDP port for packets of this protocol, and TCP port of the export.
    pub port: u16,
    /// Its addresses, best first.
    pub addresses: Vec<IpAddr>,
    /// Its exports.
    pub exports: Vec<NodeExport>,
    /// Load average over a minute, in hundredths.
    pub load_percent: u16,
    /// Free space of the exported file system, in bytes.
    pub free_bytes: u64,
    /// Total space of the exported file system, in bytes.
    pub all_bytes: u64,
    /// Cards on which it answers Ethernet frames; may be empty.
    pub cards: Vec<EtherCard>,
}

impl NodeRecord {
    /// Returns the sort key of the records of one node; the larger one is later.
    pub(crate) fn order(&self) -> (u64, u64) {
        (self.incarnation, self.edition)
    }

    /// Returns its socket addresses, best first.
    pub fn sockets(&self) -> impl Iterator<Item = SocketAddr> {
        self.addresses.iter().map(|address| SocketAddr::new(*address, self.port))
    }

    /// Signs the record; `None` if the signer refuses.
    pub(crate) fn sign(self, signer: &Signer) -> Option<SignedRecord> {
        let mut bytes = Vec::with_capacity(RECORD_BYTES_MAX);
        self.put(&mut bytes);
        let signature = signer.sign(PURPOSE, &bytes)?;
        bytes.extend_from_slice(&signature);
        Some(SignedRecord { record: self, bytes })
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        out.extend_from_slice(&self.key.0);
        for number in [self.born, self.incarnation, self.edition] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        let leaving = if self.leaving { LEAVING } else { 0 };
        out.push(leaving | if self.cards.is_empty() { 0 } else { HAS_CARDS });
        put_text(out, self.name.as_str());
        out.extend_from_slice(&self.port.to_le_bytes());
        out.push(u8::try_from(self.addresses.len().min(ADDRESSES_MAX)).unwrap_or(0));
        self.addresses.iter().take(ADDRESSES_MAX).for_each(|address| put_address(out, address));
        out.push(u8::try_from(self.exports.len().min(EXPORTS_MAX)).unwrap_or(0));
        for export in self.exports.iter().take(EXPORTS_MAX) {
            put_text(out, export.name.as_str());
            let read_only = if export.read_only { READ_ONLY } else { 0 };
            out.push(read_only | if export.acts_for_callers { ACTS_FOR_CALLERS } else { 0 });
        }
        out.extend_from_slice(&self.load_percent.to_le_bytes());
        out.extend_from_slice(&self.free_bytes.to_le_bytes());
        out.extend_from_slice(&self.all_bytes.to_le_bytes());
        if !self.cards.is_empty() {
            out.push(u8::try_from(self.cards.len().min(CARDS_MAX)).unwrap_or(0));
            self.cards.iter().take(CARDS_MAX).for_each(|card| put_card(out, card));
        }
    }

    fn read(reader: &mut Reader<'_>) -> Option<NodeRecord> {
        if reader.u8()? != VERSION {
            return None;
        }
        let key = NodeKey(reader.array()?);
        let (born, incarnation, edition) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let flags = reader.u8()?;
        let name = NodeName::new(reader.text()?)?;
        let port = reader.u16()?;
        let count = usize::from(reader.u8()?);
        if count > ADDRESSES_MAX {
            return None;
        }
        let addresses = (0..count).map(|_| reader.address()).collect::<Option<Vec<IpAddr>>>()?;
        let count = usize::from(reader.u8()?);
        if count > EXPORTS_MAX {
            return None;
        }
        let exports = (0..count).map(|_| read_export(reader)).collect::<Option<Vec<NodeExport>>>()?;
        let (load_percent, free_bytes, all_bytes) = (reader.u16()?, reader.u64()?, reader.u64()?);
        let cards = if flags & HAS_CARDS == 0 { Vec::new() } else { read_cards(reader)? };
        Some(NodeRecord {
            key,
            name,
            born,
            incarnation,
            edition,
            leaving: flags & LEAVING != 0,
            port,
            addresses,
            exports,
            load_percent,
            free_bytes,
            all_bytes,
            cards,
        })
    }
}

fn read_export(reader: &mut Reader<'_>) -> Option<NodeExport> {
    let name = NodeName::new(reader.text()?)?;
    let flags = reader.u8()?;
    Some(NodeExport {
        name,
        read_only: flags & READ_ONLY != 0,
        acts_for_callers: flags & ACTS_FOR_CALLERS != 0,
    })
}

fn put_card(out: &mut Vec<u8>, card: &EtherCard) {
    out.extend_from_slice(&card.hardware);
    out.extend_from_slice(&card.network.octets());
    out.push(card.prefix);
}

fn read_cards(reader: &mut Reader<'_>) -> Option<Vec<EtherCard>> {
    let count = usize::from(reader.u8()?);
    if !(1..=CARDS_MAX).contains(&count) {
        return None;
    }
    let card = |_| {
        let (hardware, network) = (reader.array()?, Ipv4Addr::from(reader.array::<4>()?));
        Some(EtherCard { hardware, network, prefix: reader.u8()? })
    };
    (0..count).map(card).collect()
}

/// A record with its signature, as encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignedRecord {
    pub(crate) record: NodeRecord,
    pub(crate) bytes: Vec<u8>,
}

impl SignedRecord {
    /// Parses a record, without verifying its signature; `None` if it is malformed.
    pub(crate) fn read(bytes: &[u8]) -> Option<SignedRecord> {
        if bytes.len() > RECORD_BYTES_MAX {
            return None;
        }
        let (text, _) = bytes.split_at_checked(bytes.len().checked_sub(SIGNATURE_BYTES)?)?;
        let mut reader = Reader::new(text);
        let record = NodeRecord::read(&mut reader)?;
        reader.is_empty().then(|| SignedRecord { record, bytes: bytes.to_vec() })
    }

    /// Returns whether its node signed the record.
    ///
    /// # Cost
    /// One ed25519 verification.
    pub(crate) fn is_genuine(&self) -> bool {
        is_signed(PURPOSE, &self.record.key, &self.bytes)
    }
}

#[cfg(test)]
pub(crate) mod tests;
