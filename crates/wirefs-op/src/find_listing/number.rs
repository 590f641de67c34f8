//! Numbers of variable length (LEB128): seven bits per byte, lowest first, the high bit set if more bytes
//! follow.

use crate::wire::{Malformed, Reader, Wire};

/// The number of bits per byte.
const GROUP_BITS: u32 = 7;
/// The bit set in each byte but the last.
const MORE: u8 = 0x80;

/// Appends a number.
pub(super) fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= u64::from(MORE) {
        bytes.push(number as u8 | MORE);
        number >>= GROUP_BITS;
    }
    bytes.push(number as u8);
}

/// Reads a number.
///
/// # Errors
/// Fails if it exceeds 64 bits or is not in its shortest encoding.
pub(super) fn take_number(reader: &mut Reader) -> Result<u64, Malformed> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(GROUP_BITS as usize) {
        let byte = u8::take(reader)?;
        let group = u64::from(byte & !MORE);
        if group << shift >> shift != group {
            break;
        }
        number |= group << shift;
        if byte & MORE == 0 {
            if group == 0 && shift > 0 {
                return Err(reader.malformed("a number that is not in its shortest encoding"));
            }
            return Ok(number);
        }
    }
    Err(reader.malformed("a number of more than 64 bits"))
}

/// Maps a difference to an unsigned number, so that small differences of either sign are short: 0, -1, 1, -2
/// … (zigzag encoding).
pub(super) fn fold(difference: i64) -> u64 {
    ((difference << 1) ^ (difference >> (i64::BITS - 1))) as u64
}

/// Maps an unsigned number back to its difference.
pub(super) fn unfold(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}
