//! Packed messages: whole messages, compressed, in one message of a type of its own.
//!
//! `size[4] Packed[1] tag[2] data`. The tag is NOTAG. The data of all packed messages of one direction of a
//! connection are one Zstandard stream (RFC 8878) with a window of at most [`WINDOW_LOG`]; each ends with a flushed
//! block. They are consecutive messages with their size words, at most [`PACKED_MESSAGES_MAX`] and [`PACKED_BYTES_MAX`] bytes. Rversion and
//! packed messages are never packed.

use crate::limits::{MESSAGE_BYTES_MAX, MESSAGE_BYTES_MIN, PACKED_BYTES_MAX, PACKED_MESSAGES_MAX};
use crate::message::version::FEATURE_PACKED;
use crate::wire::Malformed;
use crate::{Frame, NOTAG, Reply};
use bytes::Bytes;

/// The type byte of a packed message.
const PACKED: u8 = 2;
/// The type byte of Rversion.
const RVERSION: u8 = 101;
/// Bytes of a message before its data: size, type, tag.
const HEAD_BYTES: usize = 7;
/// Bytes of a body before its data: type, tag.
const BODY_HEAD_BYTES: usize = HEAD_BYTES - 4;
/// Larger messages share the unpacked buffer, smaller ones are copied, in bytes: a held message keeps at most six
/// times its size alive.
const COPY_BYTES_MAX: usize = 32 * 1024;

/// The base-2 logarithm of the largest window of the stream, in bytes. The receiver needs about twice that memory.
pub const WINDOW_LOG: u32 = 19;

/// Returns the frame of a packed message with this part of the stream.
pub fn frame(data: Bytes) -> Frame {
    let size = u32::try_from(HEAD_BYTES + data.len()).unwrap_or(u32::MAX);
    let mut head = Vec::with_capacity(HEAD_BYTES);
    head.extend_from_slice(&size.to_le_bytes());
    head.push(PACKED);
    head.extend_from_slice(&NOTAG.0.to_le_bytes());
    Frame { head, data }
}

/// Returns the part of the stream in a body; `None` if it is no packed message.
pub fn data(body: &Bytes) -> Option<Bytes> {
    (body.first() == Some(&PACKED)).then(|| body.slice(BODY_HEAD_BYTES.min(body.len())..))
}

/// Returns whether a frame may be packed. Rversion agrees on packing, so it is readable without.
pub fn may_pack(frame: &Frame) -> bool {
    frame.wire_len() <= PACKED_BYTES_MAX && !matches!(frame.head.get(4), Some(&(PACKED | RVERSION)))
}

/// Returns whether a body is an Rversion that agrees on packing.
pub fn agrees(body: &Bytes) -> bool {
    body.first() == Some(&RVERSION)
        && matches!(Reply::decode(body.clone()), Ok((_, Reply::Version(version))) if version.features & FEATURE_PACKED != 0)
}

/// Returns whether a frame is an Rversion that agrees on packing.
///
/// # Cost
/// Nothing for other messages.
pub fn is_agreement(frame: &Frame) -> bool {
    frame.head.get(4) == Some(&RVERSION) && agrees(&frame.to_body())
}

/// Splits unpacked data into the bodies of its messages.
///
/// # Errors
/// The data are not whole messages.
pub fn split(data: &Bytes) -> Result<Vec<Bytes>, Malformed> {
    let mut bodies = Vec::new();
    let mut at = 0;
    while at < data.len() {
        let malformed = |what| Malformed { what, at };
        let rest = data.get(at..).unwrap_or_default();
        let size = rest.first_chunk::<4>().map(|size| u32::from_le_bytes(*size) as usize);
        let size = size.ok_or_else(|| malformed("a packed message without a size"))?;
        if !(MESSAGE_BYTES_MIN..=MESSAGE_BYTES_MAX).contains(&size) || rest.len() < size {
            return Err(malformed("a packed message of an impossible size"));
        }
        if bodies.len() == PACKED_MESSAGES_MAX {
            return Err(malformed("too many messages in one"));
        }
        let body = data.slice(at + 4..at + size);
        bodies.push(if body.len() < COPY_BYTES_MAX { Bytes::copy_from_slice(&body) } else { body });
        at += size;
    }
    Ok(bodies)
}

#[cfg(test)]
mod tests;
