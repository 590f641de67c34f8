//! Numbers that take as many bytes as they need: seven bits in each, the lowest first, the high bit set when more follow.

use crate::wire::{Malformed, Reader, Wire};

/// Bits of a number in each byte.
const GROUP_BITS: u32 = 7;
/// Set in each byte but the last.
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
/// It does not fit 64 bits, or is longer than it needs to be.
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
                return Err(reader.malformed("a number longer than it needs to be"));
            }
            return Ok(number);
        }
    }
    Err(reader.malformed("a number of more than 64 bits"))
}

/// The number that stands for a difference, so that small ones of either sign are short: 0, -1, 1, -2 …
pub(super) fn fold(difference: i64) -> u64 {
    ((difference << 1) ^ (difference >> (i64::BITS - 1))) as u64
}

/// The difference that a number stands for.
pub(super) fn unfold(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}
