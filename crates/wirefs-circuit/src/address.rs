//! Identifiers of nodes, cards, paths, groups and circuits.

use std::fmt;

/// The hardware (MAC) address of a network card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CardAddress(pub [u8; CardAddress::BYTES]);

impl CardAddress {
    /// The size in bytes.
    pub const BYTES: usize = 6;
}

/// One of this node's cards: its index in [`CircuitConfig::cards`](crate::CircuitConfig::cards).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CardId(pub u8);

/// A network path: a local card and a remote card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NetworkPath {
    /// The local card.
    pub card: CardId,
    /// The address of the remote card.
    pub remote: CardAddress,
}

/// The Ed25519 public key of a node, which is its identity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerKey(pub [u8; PeerKey::BYTES]);

impl PeerKey {
    /// The size in bytes.
    pub const BYTES: usize = 32;
}

impl fmt::Debug for PeerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PeerKey(")?;
        self.0.iter().take(4).try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("…)")
    }
}

/// A group of a node (all paths to one peer): its slot in the table, and the generation of the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId {
    pub(crate) slot: u8,
    pub(crate) generation: u16,
}

impl GroupId {
    /// The encoded size, in bytes.
    pub(crate) const BYTES: usize = 3;

    pub(crate) fn encode(self) -> [u8; GroupId::BYTES] {
        let [low, high] = self.generation.to_le_bytes();
        [self.slot, low, high]
    }

    pub(crate) fn decode([slot, low, high]: [u8; GroupId::BYTES]) -> GroupId {
        GroupId { slot, generation: u16::from_le_bytes([low, high]) }
    }
}

/// The traffic class of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CircuitClass {
    /// Short messages with low latency. They have priority and use one path.
    Request,
    /// Bulk transfers. They use the remaining capacity of all paths.
    Bulk,
}

/// The role of a node in a group: handshake initiator or responder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Side {
    Initiator,
    Responder,
}

/// The number of a circuit in its group, as encoded on the wire: the opening side, the class, the slot in the
/// table of that side, and the generation of the slot.
///
/// ```text
/// bit 31: opened by the responder | 30: bulk | 29–28: 0 | 27–16: slot | 15–0: generation
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CircuitNumber(pub(crate) u32);

const OPENED_BY_RESPONDER: u32 = 1 << 31;
const BULK: u32 = 1 << 30;

impl CircuitNumber {
    pub(crate) fn new(opener: Side, class: CircuitClass, slot: usize, generation: u16) -> CircuitNumber {
        let opener = if opener == Side::Responder { OPENED_BY_RESPONDER } else { 0 };
        let class = if class == CircuitClass::Bulk { BULK } else { 0 };
        CircuitNumber(opener | class | (slot as u32 & 0xFFF) << 16 | u32::from(generation))
    }

    pub(crate) fn opener(self) -> Side {
        if self.0 & OPENED_BY_RESPONDER == 0 { Side::Initiator } else { Side::Responder }
    }

    /// Returns the traffic class of the circuit.
    pub fn class(self) -> CircuitClass {
        if self.0 & BULK == 0 { CircuitClass::Request } else { CircuitClass::Bulk }
    }

    pub(crate) fn slot(self) -> usize {
        (self.0 >> 16 & 0x3FFF) as usize
    }

    pub(crate) fn generation(self) -> u16 {
        // The low half.
        self.0 as u16
    }
}

/// A circuit of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CircuitId {
    /// The group.
    pub group: GroupId,
    /// The number in the group.
    pub number: CircuitNumber,
}
