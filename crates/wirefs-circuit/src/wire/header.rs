//! The clear header of each packet.
//!
//! ```text
//! 0     kind (high 4 bits: 1 hello, 2 cookie, 3 reply, 4 finish, 8 sealed) and, low 4 bits, version 1 or the path
//! 1–3   the receiver's group (of a hello: the sender's)
//! 4–7   of a sealed packet: the low 32 bits of the path's packet counter, little-endian
//! ```

use crate::address::GroupId;

/// The version of the handshake, and of all that follows from it.
const VERSION: u8 = 1;
/// The clear header of a handshake packet, in bytes.
pub(crate) const HANDSHAKE_HEADER_BYTES: usize = 1 + GroupId::BYTES;
/// The clear header of a sealed packet, in bytes.
pub(crate) const SEALED_HEADER_BYTES: usize = HANDSHAKE_HEADER_BYTES + 4;

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The first of a handshake.
    Hello,
    /// An answer to it: come again with this.
    Cookie,
    /// The second.
    Reply,
    /// The third.
    Finish,
    /// Everything afterwards, on this path.
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

/// The first four bytes.
pub(crate) fn encode(kind: Kind, group: GroupId) -> [u8; HANDSHAKE_HEADER_BYTES] {
    let [a, b, c] = group.encode();
    [kind.encode(), a, b, c]
}

/// The first four bytes of a packet; none if it is no packet of ours.
pub(crate) fn decode(packet: &[u8]) -> Option<(Kind, GroupId)> {
    let [kind, a, b, c] = *packet.first_chunk()?;
    Some((Kind::decode(kind)?, GroupId::decode([a, b, c])))
}

/// The low half of a sealed packet's counter.
pub(crate) fn counter(packet: &[u8]) -> Option<u32> {
    packet.get(HANDSHAKE_HEADER_BYTES..)?.first_chunk().copied().map(u32::from_le_bytes)
}

/// The whole of a counter of which only the low half came: the one nearest to what is expected next.
pub(crate) fn whole_counter(expected: u64, low: u32) -> u64 {
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
