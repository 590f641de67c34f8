//! The clear header of each packet.
//!
//! ```text
//! 0     kind (high 4 bits: 1 hello, 2 cookie, 3 reply, 4 finish, 8 sealed); low 4 bits: version 1, or path number
//! 1–3   the receiver's group (in a hello: the sender's)
//! 4–7   sealed packets: the low 32 bits of the packet number, little-endian
//! ```

use crate::address::GroupId;

/// The version of the protocol.
const VERSION: u8 = 1;
/// The size of the clear header of a handshake packet, in bytes.
pub(crate) const HANDSHAKE_HEADER_BYTES: usize = 1 + GroupId::BYTES;
/// The size of the clear header of a sealed packet, in bytes.
pub(crate) const SEALED_HEADER_BYTES: usize = HANDSHAKE_HEADER_BYTES + 4;

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Handshake: the first packet.
    Hello,
    /// Handshake: a request to repeat the hello with a cookie.
    Cookie,
    /// Handshake: the second packet.
    Reply,
    /// Handshake: the third packet.
    Finish,
    /// A packet of an established group on this path.
    Sealed { path: u8 },
}

impl Kind {
    fn encode(self) -> u8 {
        match self {
            Kind::Hello => 1 << 4 | VERSION,
            Kind::Cookie => 2 << 4 | VERSION,
            Kind::Reply => 3 << 4 | VERSION,
            Kind::Finish => 4 << 4 | VERSION,
            Kind::Sealed { path } => 8 << 4 | path & 0xF,
        }
    }

    fn decode(byte: u8) -> Option<Kind> {
        match (byte >> 4, byte & 0xF) {
            (1, VERSION) => Some(Kind::Hello),
            (2, VERSION) => Some(Kind::Cookie),
            (3, VERSION) => Some(Kind::Reply),
            (4, VERSION) => Some(Kind::Finish),
            (8, path) => Some(Kind::Sealed { path }),
            (_, _) => None,
        }
    }
}

/// Encodes the first four bytes.
pub(crate) fn encode(kind: Kind, group: GroupId) -> [u8; HANDSHAKE_HEADER_BYTES] {
    let [a, b, c] = group.encode();
    [kind.encode(), a, b, c]
}

/// Decodes the first four bytes; `None` if the packet is not of this protocol.
pub(crate) fn decode(packet: &[u8]) -> Option<(Kind, GroupId)> {
    let [kind, a, b, c] = *packet.first_chunk()?;
    Some((Kind::decode(kind)?, GroupId::decode([a, b, c])))
}

/// Returns the truncated packet number of a sealed packet.
pub(crate) fn packet_number(packet: &[u8]) -> Option<u32> {
    packet.get(HANDSHAKE_HEADER_BYTES..)?.first_chunk().copied().map(u32::from_le_bytes)
}

/// Decodes a truncated packet number: the candidate closest to `expected` (RFC 9000, appendix A.3).
pub(crate) fn decode_packet_number(expected: u64, low: u32) -> u64 {
    const SPAN: u64 = 1 << 32;
    let candidate = expected & !(SPAN - 1) | u64::from(low);
    if candidate + SPAN / 2 < expected {
        candidate + SPAN
    } else if candidate > expected + SPAN / 2 && candidate >= SPAN {
        candidate - SPAN
    } else {
        candidate
    }
}

#[cfg(test)]
mod tests;
