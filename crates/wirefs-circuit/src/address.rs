//! Who and where: nodes, cards, paths, groups, circuits.

use std::fmt;

/// The hardware address of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub [u8; Address::BYTES]);

impl Address {
    /// Its size in bytes.
    pub const BYTES: usize = 6;
}

/// One of this node's cards, by its place in [`Config::cards`](crate::Config::cards).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CardId(pub u8);

/// From one of our cards to one of the peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Way {
    /// Ours.
    pub card: CardId,
    /// The peer's.
    pub remote: Address,
}

/// The ed25519 public key of a node: who it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeKey(pub [u8; NodeKey::BYTES]);

impl NodeKey {
    /// Its size in bytes.
    pub const BYTES: usize = 32;
}

impl fmt::Debug for NodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeKey(")?;
        self.0.iter().take(4).try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("…)")
    }
}

/// A group of a node: all paths to one peer, by its place in the table, and how often that was used before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId {
    pub(crate) slot: u8,
    pub(crate) generation: u16,
}

impl GroupId {
    /// Its size on the wire, in bytes.
    pub(crate) const BYTES: usize = 3;

    pub(crate) fn encode(self) -> [u8; GroupId::BYTES] {
        let [low, high] = self.generation.to_le_bytes();
        [self.slot, low, high]
    }

    pub(crate) fn decode([slot, low, high]: [u8; GroupId::BYTES]) -> GroupId {
        GroupId { slot, generation: u16::from_le_bytes([low, high]) }
    }
}

/// What a circuit is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Short messages that somebody waits for: they go first, and over one path.
    Request,
    /// Long transfers: what is left of all paths.
    Bulk,
}

/// Which side of a group: the one that dialled or the one that was dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Side {
    Dialler,
    Dialled,
}

/// A circuit's number in its group, as it is on the wire: who opened it, its class, its place in that side's table, and
/// how often that place was used before.
///
/// ```text
/// bit 31: the dialled side opened it | 30: bulk | 29–28: 0 | 27–16: slot | 15–0: generation
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number(pub(crate) u32);

const OPENED_BY_DIALLED: u32 = 1 << 31;
const BULK: u32 = 1 << 30;

impl Number {
    pub(crate) fn new(opener: Side, class: Class, slot: usize, generation: u16) -> Number {
        let opener = if opener == Side::Dialled { OPENED_BY_DIALLED } else { 0 };
        let class = if class == Class::Bulk { BULK } else { 0 };
        Number(opener | class | (slot as u32 & 0xFFF) << 16 | u32::from(generation))
    }

    pub(crate) fn opener(self) -> Side {
        if self.0 & OPENED_BY_DIALLED == 0 { Side::Dialler } else { Side::Dialled }
    }

    /// What the circuit is for.
    pub fn class(self) -> Class {
        if self.0 & BULK == 0 { Class::Request } else { Class::Bulk }
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
    /// Its group.
    pub group: GroupId,
    /// Its number there.
    pub number: Number,
}
