//! The layout of an echo packet's payload.
//!
//! ```text
//!  0        4      5             12         28      36     37       40             end - 16
//!  | origin | host | sequence 7 | block id | sent  | lane | length | piece …      | tag 16 |
//!  |------- in the clear -------|------------------- sealed --------------------- |
//!  |------ is the nonce --------|
//! ```
//!
//! Numbers are big-endian. *Origin* identifies a store and a run among those that share a key. *Sequence*
//! counts the packets sent to this host, so no nonce repeats. *Sent* is the send time on the store's clock in
//! nanoseconds. *Lane* is the position of the packet among those of its block. *Length* is the size of the
//! block in bytes. The network sees only the packet's size and time.

use wirefs_op::Time;

use crate::block::EchoBlockId;
use crate::host::HostId;
use crate::limits::LANES_MAX;

/// Size of the clear header, which is the nonce, in bytes.
pub(crate) const CLEAR_BYTES: usize = 12;
/// Size of the AEAD tag in bytes.
pub(crate) const TAG_BYTES: usize = 16;
/// Size of the sealed header in bytes.
const SEALED_HEAD_BYTES: usize = 28;
/// Overhead of a packet beside its piece, in bytes.
pub const OVERHEAD_BYTES: usize = CLEAR_BYTES + SEALED_HEAD_BYTES + TAG_BYTES;
/// Bits of a sequence number; the host's number is above them.
const SEQUENCE_BITS: u32 = 56;
/// The lane value of a padding probe.
const PROBE_LANE: u8 = u8::MAX;

const _: () = assert!(LANES_MAX < PROBE_LANE as usize, "no lane has the value of padding probes");

/// Identifies a store and a run among those that share a key. No two may send with the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin(pub u32);

/// Number of packets sent to a host before this one. At a million per second its 56 bits last two thousand
/// years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketSequence(pub u64);

/// The position of a packet among those of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LaneId(pub(crate) u8);

/// The clear header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClearHeader {
    pub(crate) origin: Origin,
    pub(crate) host: HostId,
    pub(crate) sequence: PacketSequence,
}

/// The sealed payload of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketPayload {
    /// A piece of a block.
    Piece(Piece),
    /// A padding probe: no data, for measurements.
    Probe,
}

/// Identifies a piece of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) id: EchoBlockId,
    pub(crate) lane: LaneId,
    /// Size of the whole block in bytes.
    pub(crate) block_bytes: u32,
}

/// The sealed header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SealedHeader {
    pub(crate) sent: Time,
    pub(crate) payload: PacketPayload,
}

impl ClearHeader {
    /// Decodes the clear header; `None` if the packet is too short.
    pub(crate) fn decode(packet: &[u8]) -> Option<ClearHeader> {
        let (origin, rest) = packet.split_first_chunk()?;
        let number = u64::from_be_bytes(*rest.first_chunk()?);
        Some(ClearHeader {
            origin: Origin(u32::from_be_bytes(*origin)),
            // Eight bits are left.
            host: HostId((number >> SEQUENCE_BITS) as u8),
            sequence: PacketSequence(number & ((1 << SEQUENCE_BITS) - 1)),
        })
    }

    /// Encodes the header, which is the nonce.
    pub(crate) fn encode(self) -> [u8; CLEAR_BYTES] {
        let number = u64::from(self.host.0) << SEQUENCE_BITS | self.sequence.0;
        let mut bytes = [0; CLEAR_BYTES];
        let (origin, rest) = bytes.split_at_mut(4);
        origin.copy_from_slice(&self.origin.0.to_be_bytes());
        rest.copy_from_slice(&number.to_be_bytes());
        bytes
    }
}

impl SealedHeader {
    /// Decodes the sealed header; `None` if it is invalid, which requires the key.
    pub(crate) fn decode(unsealed: &[u8]) -> Option<SealedHeader> {
        let (id, rest) = unsealed.split_first_chunk()?;
        let (sent, rest) = rest.split_first_chunk()?;
        let [lane, length @ ..] = rest.first_chunk::<4>()?;
        let [high, middle, low] = *length;
        let block_bytes = u32::from_be_bytes([0, high, middle, low]);
        let payload = match *lane {
            PROBE_LANE => PacketPayload::Probe,
            lane if usize::from(lane) < LANES_MAX => {
                PacketPayload::Piece(Piece { id: EchoBlockId(*id), lane: LaneId(lane), block_bytes })
            }
            _ => return None,
        };
        Some(SealedHeader { sent: Time(u64::from_be_bytes(*sent)), payload })
    }

    /// Encodes the header.
    pub(crate) fn encode(self) -> [u8; SEALED_HEAD_BYTES] {
        let (id, lane, block_bytes) = match self.payload {
            PacketPayload::Piece(piece) => (piece.id.0, piece.lane.0, piece.block_bytes),
            PacketPayload::Probe => ([0; EchoBlockId::BYTES], PROBE_LANE, 0),
        };
        let [_, length @ ..] = block_bytes.to_be_bytes();
        let mut bytes = [0; SEALED_HEAD_BYTES];
        let (to_id, rest) = bytes.split_at_mut(EchoBlockId::BYTES);
        to_id.copy_from_slice(&id);
        let (to_sent, rest) = rest.split_at_mut(8);
        to_sent.copy_from_slice(&self.sent.0.to_be_bytes());
        let (to_lane, to_length) = rest.split_at_mut(1);
        to_lane.fill(lane);
        to_length.copy_from_slice(&length);
        bytes
    }
}

/// Offset of the piece in a packet.
const BODY_AT: usize = CLEAR_BYTES + SEALED_HEAD_BYTES;

/// Returns the piece in an open packet.
pub(crate) fn body(packet: &[u8]) -> &[u8] {
    let end = packet.len().saturating_sub(TAG_BYTES);
    packet.get(BODY_AT..end).unwrap_or_default()
}

/// Returns the place for the piece in a packet to be sealed.
pub(crate) fn body_mut(packet: &mut [u8]) -> &mut [u8] {
    let end = packet.len().saturating_sub(TAG_BYTES);
    packet.get_mut(BODY_AT..end).unwrap_or_default()
}

#[cfg(test)]
mod tests;
