//! The header of an echo message: type, code, checksum, identifier, sequence number.
//!
//! ```text
//!  0      1      2        4       6
//!  | type | code | checksum | ident | sequence | payload …      all numbers big-endian
//! ```

use crate::checksum::checksum;
use crate::icmp::Family;
use crate::limits::ECHO_HEADER_BYTES;

/// The identifier by which a socket recognizes its echo messages (RFC 792). The host returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoIdent(pub u16);

/// The sequence number of an echo message (RFC 792). The host returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoSequence(pub u16);

/// Returns the types of request and reply (RFC 792; RFC 4443, section 4).
const fn kinds(family: Family) -> (u8, u8) {
    match family {
        Family::V4 => (8, 0),
        Family::V6 => (128, 129),
    }
}

/// Returns the type of a reply, for the kernel's filter.
pub(super) const fn reply_kind(family: Family) -> u8 {
    kinds(family).1
}

/// Writes the header of a request before the payload in `message`.
///
/// The kernel fills in the checksum of ICMPv6, which covers addresses that it chooses.
///
/// # Cost
/// For IPv4 one pass over the message.
pub(crate) fn write_request(message: &mut [u8], family: Family, ident: EchoIdent, sequence: EchoSequence) {
    let Some((header, _)) = message.split_first_chunk_mut::<ECHO_HEADER_BYTES>() else {
        return;
    };
    let [ident_high, ident_low] = ident.0.to_be_bytes();
    let [sequence_high, sequence_low] = sequence.0.to_be_bytes();
    *header = [kinds(family).0, 0, 0, 0, ident_high, ident_low, sequence_high, sequence_low];
    if family == Family::V4 {
        let sum = checksum(message);
        if let Some(field) = message.get_mut(2..4) {
            field.copy_from_slice(&sum);
        }
    }
}

/// Returns whether `message` is an echo reply with this identifier. The kernel's filter passes no other; this
/// check does not depend on it.
pub(crate) fn is_reply(message: &[u8], family: Family, ident: EchoIdent) -> bool {
    let expected = ident.0.to_be_bytes();
    matches!(message, [kind, 0, _, _, high, low, _, _, ..] if *kind == reply_kind(family) && [*high, *low] == expected)
}

#[cfg(test)]
mod tests;
