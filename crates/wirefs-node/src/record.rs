//! What a node says of itself, signed, so that others can pass it on.
//!
//! ```text
//! version 1 · key 32 · born 8 · incarnation 8 · edition 8 · flags 1 · name text · port 2
//! · addresses 1 + n × (family 1, 4 or 16) · exports 1 + n × (name text, flags 1) · load 2 · free 8 · all 8
//! · cards, where a flag says that there are some: 1 + n × (hardware 6, network 4, prefix 1) · signature 64
//! ```

use crate::key::{Name, NodeKey};
use crate::limits::{ADDRESSES_MAX, CARDS_MAX, EXPORTS_MAX, RECORD_BYTES_MAX};
use crate::seal::{SIGNATURE_BYTES, Signer, is_signed};
use crate::wire::{Reader, put_address, put_text};
use core::net::{IpAddr, Ipv4Addr, SocketAddr};

/// What every signature of a record begins with.
const PURPOSE: &[u8] = b"wirefs node record\0";
const VERSION: u8 = 1;
const LEAVING: u8 = 1;
const HAS_CARDS: u8 = 2;
const READ_ONLY: u8 = 1;
const ACTS_FOR_CALLERS: u8 = 2;

/// A tree that a node serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// What it is called.
    pub name: Name,
    /// It refuses all changes.
    pub read_only: bool,
    /// Its server checks rights as each caller, so that all users of a machine may be let in.
    pub acts_for_callers: bool,
}

/// A network card over which a node answers Ethernet packets of its own kind, beside IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EtherCard {
    /// Its hardware address.
    pub hardware: [u8; 6],
    /// The network that it is in: who has a card in the same one is taken to be on the same segment.
    pub network: Ipv4Addr,
    /// How many bits of that count.
    pub prefix: u8,
}

impl EtherCard {
    /// Whether the other one is in the same network.
    pub fn is_beside(&self, other: &EtherCard) -> bool {
        (self.network, self.prefix) == (other.network, other.prefix)
    }
}

/// Which card of one node reaches which of another: each at most once, in the order in which the nodes name them. Where two
/// of both are in one network, the first reaches the first.
pub fn pairs<'a>(ours: &'a [EtherCard], theirs: &'a [EtherCard]) -> Vec<(usize, &'a EtherCard)> {
    let mut free: Vec<&EtherCard> = theirs.iter().collect();
    let mut pairs = Vec::new();
    for (index, card) in ours.iter().enumerate() {
        if let Some(at) = free.iter().position(|other| card.is_beside(other)) {
            pairs.push((index, free.remove(at)));
        }
    }
    pairs
}

/// What a node says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Who says it.
    pub key: NodeKey,
    /// What it is called.
    pub name: Name,
    /// When it was started, in milliseconds since 1970 by its clock: of two that claim a name at once, the earlier has it.
    pub born: u64,
    /// Grows with each start, and whenever the node refutes that it is dead.
    pub incarnation: u64,
    /// Grows with each change within an incarnation.
    pub edition: u64,
    /// It goes by its own will.
    pub leaving: bool,
    /// Where it listens, over UDP for packets of this kind and over TCP for its export.
    pub port: u16,
    /// Where it can be reached, the best first.
    pub addresses: Vec<IpAddr>,
    /// What it serves.
    pub exports: Vec<Export>,
    /// Processes that ran or wanted to, on average over a minute, in hundredths.
    pub load_percent: u16,
    /// Room that is left where its export is, in bytes.
    pub free_bytes: u64,
    /// All room there, in bytes.
    pub all_bytes: u64,
    /// Where it answers Ethernet packets; none where it does not.
    pub cards: Vec<EtherCard>,
}

impl Record {
    /// Which of two records of one node is the later one.
    pub(crate) fn order(&self) -> (u64, u64) {
        (self.incarnation, self.edition)
    }

    /// Where it can be reached, the best first.
    pub fn sockets(&self) -> impl Iterator<Item = SocketAddr> {
        self.addresses.iter().map(|address| SocketAddr::new(*address, self.port))
    }

    /// Signs it; `None` where the signer refuses.
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

    fn read(reader: &mut Reader<'_>) -> Option<Record> {
        if reader.u8()? != VERSION {
            return None;
        }
        let key = NodeKey(reader.array()?);
        let (born, incarnation, edition) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let flags = reader.u8()?;
        let name = Name::new(reader.text()?)?;
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
        let exports = (0..count).map(|_| read_export(reader)).collect::<Option<Vec<Export>>>()?;
        let (load_percent, free_bytes, all_bytes) = (reader.u16()?, reader.u64()?, reader.u64()?);
        let cards = if flags & HAS_CARDS == 0 { Vec::new() } else { read_cards(reader)? };
        Some(Record {
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

fn read_export(reader: &mut Reader<'_>) -> Option<Export> {
    let name = Name::new(reader.text()?)?;
    let flags = reader.u8()?;
    Some(Export { name, read_only: flags & READ_ONLY != 0, acts_for_callers: flags & ACTS_FOR_CALLERS != 0 })
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

/// A record with its signature, as it travels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignedRecord {
    pub(crate) record: Record,
    pub(crate) bytes: Vec<u8>,
}

impl SignedRecord {
    /// Reads a record, without a look at its signature; `None` where it is none.
    pub(crate) fn read(bytes: &[u8]) -> Option<SignedRecord> {
        if bytes.len() > RECORD_BYTES_MAX {
            return None;
        }
        let (text, _) = bytes.split_at_checked(bytes.len().checked_sub(SIGNATURE_BYTES)?)?;
        let mut reader = Reader::new(text);
        let record = Record::read(&mut reader)?;
        reader.is_empty().then(|| SignedRecord { record, bytes: bytes.to_vec() })
    }

    /// Whether its node signed it.
    ///
    /// # Cost
    /// One ed25519 verification.
    pub(crate) fn is_genuine(&self) -> bool {
        is_signed(PURPOSE, &self.record.key, &self.bytes)
    }
}

#[cfg(test)]
pub(crate) mod tests;
