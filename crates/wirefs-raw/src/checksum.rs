//! The Internet checksum.

/// Returns the Internet checksum of `bytes`, whose checksum field is zero, in storage order.
///
/// # Cost
/// One pass over the bytes, no copy.
///
/// # Source
/// RFC 1071: the sum does not depend on the byte order within words, nor on the width of the addition.
pub fn checksum(bytes: &[u8]) -> [u8; 2] {
    let mut words = bytes.chunks_exact(4);
    let mut sum: u64 = 0;
    for word in &mut words {
        sum += u64::from(word.first_chunk().map_or(0, |word| u32::from_ne_bytes(*word)));
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let mut last = [0; 4];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        sum += u64::from(u32::from_ne_bytes(last));
    }
    (!fold(sum)).to_ne_bytes()
}

/// Adds the carries until 16 bits are left.
fn fold(mut sum: u64) -> u16 {
    while sum > u64::from(u16::MAX) {
        sum = (sum & u64::from(u16::MAX)) + (sum >> 16);
    }
    // The loop left at most 16 bits.
    sum as u16
}

#[cfg(test)]
mod tests;
