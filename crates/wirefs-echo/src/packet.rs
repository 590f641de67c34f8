//! The bytes of an echo packet's payload.
//!
//! ```text
//!  0        4      5             12         28      36     37       40             end - 16
//!  | origin | host | sequence 7 | block id | sent  | lane | length | piece …      | tag 16 |
//!  |------- in the clear -------|------------------- sealed --------------------- |
//!  |------ is the nonce --------|
//! ```
//!
//! Numbers are big-endian. *Origin* tells apart the stores that share a key, and the runs of one store. *Sequence* counts
//! the packets sent to this host, so no nonce is ever used twice. *Sent* is the time of sending on the store's own clock,
//! in nanoseconds. *Lane* says which of the block's packets this is. *Length* is that of the whole block, in bytes.
//! Nothing of it tells the network more than the packet's size and when it passes.

use wirefs_op::Time;

use crate::block::BlockId;
use crate::host::HostId;
use crate::limits::LANES_MAX;

/// The bytes in the clear, which are the nonce.
pub(crate) const CLEAR_BYTES: usize = 12;
/// The bytes of the tag.
pub(crate) const TAG_BYTES: usize = 16;
/// The sealed bytes before the piece.
const SEALED_HEAD_BYTES: usize = 28;
/// What a packet costs beside its piece, in bytes.
pub const OVERHEAD_BYTES: usize = CLEAR_BYTES + SEALED_HEAD_BYTES + TAG_BYTES;
/// The bits of a sequence number; the host's number stands above them.
const SEQUENCE_BITS: u32 = 56;
/// The lane of a packet that carries nothing.
const BALLAST: u8 = u8::MAX;

const _: () = assert!(LANES_MAX < BALLAST as usize, "no lane is taken for ballast");

/// What tells apart the stores that share a key, and the runs of one store: no two may send with the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin(pub u32);

/// How many packets were sent to a host before this one. At a million a second its 56 bits last for two thousand years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sequence(pub u64);

/// The number of a packet among those that make up one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LaneId(pub(crate) u8);

/// What is told in the clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clear {
    pub(crate) origin: Origin,
    pub(crate) host: HostId,
    pub(crate) sequence: Sequence,
}

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cargo {
    /// A piece of a block.
    Piece(Piece),
    /// Nothing: it measures the way.
    Ballast,
}

/// Which piece of which block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) id: BlockId,
    pub(crate) lane: LaneId,
    /// The bytes of the whole block.
    pub(crate) block_bytes: u32,
}

/// The sealed head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) sent: Time,
    pub(crate) cargo: Cargo,
}

impl Clear {
    /// Reads it from the front of a packet; none when the packet is too short.
    pub(crate) fn decode(packet: &[u8]) -> Option<Clear> {
        let (origin, rest) = packet.split_first_chunk()?;
        let number = u64::from_be_bytes(*rest.first_chunk()?);
        Some(Clear {
            origin: Origin(u32::from_be_bytes(*origin)),
            // Eight bits are left.
            host: HostId((number >> SEQUENCE_BITS) as u8),
            sequence: Sequence(number & ((1 << SEQUENCE_BITS) - 1)),
        })
    }

    /// Its bytes, which are the nonce.
    pub(crate) fn encode(self) -> [u8; CLEAR_BYTES] {
        let number = u64::from(self.host.0) << SEQUENCE_BITS | self.sequence.0;
        let mut bytes = [0; CLEAR_BYTES];
        let (origin, rest) = bytes.split_at_mut(4);
        origin.copy_from_slice(&self.origin.0.to_be_bytes());
        rest.copy_from_slice(&number.to_be_bytes());
        bytes
    }
}

impl Head {
    /// Reads the head of what was unsealed; none when it makes no sense, which only somebody with the key can bring about.
    pub(crate) fn decode(unsealed: &[u8]) -> Option<Head> {
        let (id, rest) = unsealed.split_first_chunk()?;
        let (sent, rest) = rest.split_first_chunk()?;
        let [lane, length @ ..] = rest.first_chunk::<4>()?;
        let [high, middle, low] = *length;
        let block_bytes = u32::from_be_bytes([0, high, middle, low]);
        let cargo = match *lane {
            BALLAST => Cargo::Ballast,
            lane if usize::from(lane) < LANES_MAX => {
                Cargo::Piece(Piece { id: BlockId(*id), lane: LaneId(lane), block_bytes })
            }
            _ => return None,
        };
        Some(Head { sent: Time(u64::from_be_bytes(*sent)), cargo })
    }

    /// Its bytes.
    pub(crate) fn encode(self) -> [u8; SEALED_HEAD_BYTES] {
        let (id, lane, block_bytes) = match self.cargo {
            Cargo::Piece(piece) => (piece.id.0, piece.lane.0, piece.block_bytes),
            Cargo::Ballast => ([0; BlockId::BYTES], BALLAST, 0),
        };
        let [_, length @ ..] = block_bytes.to_be_bytes();
        let mut bytes = [0; SEALED_HEAD_BYTES];
        let (to_id, rest) = bytes.split_at_mut(BlockId::BYTES);
        to_id.copy_from_slice(&id);
        let (to_sent, rest) = rest.split_at_mut(8);
        to_sent.copy_from_slice(&self.sent.0.to_be_bytes());
        let (to_lane, to_length) = rest.split_at_mut(1);
        to_lane.fill(lane);
        to_length.copy_from_slice(&length);
        bytes
    }
}

/// Where the piece begins in a packet.
const BODY_AT: usize = CLEAR_BYTES + SEALED_HEAD_BYTES;

/// The piece in a packet that is open, or to be sealed.
pub(crate) fn body(packet: &[u8]) -> &[u8] {
    let end = packet.len().saturating_sub(TAG_BYTES);
    packet.get(BODY_AT..end).unwrap_or_default()
}

/// The place for the piece in a packet that is to be sealed.
pub(crate) fn body_mut(packet: &mut [u8]) -> &mut [u8] {
    let end = packet.len().saturating_sub(TAG_BYTES);
    packet.get_mut(BODY_AT..end).unwrap_or_default()
}

#[cfg(test)]
mod tests;
