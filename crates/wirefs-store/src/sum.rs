//! Checksums: the first half of SHA-256, which has hardware support. They detect damage, not attacks: only the user can
//! write here.

use ring::digest::{Context, SHA256};

/// Bytes of a checksum.
pub const SUM_BYTES: usize = 16;

/// A checksum.
pub type Sum = [u8; SUM_BYTES];

/// Returns the checksum of the concatenated parts.
pub fn sum(parts: &[&[u8]]) -> Sum {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(part);
    }
    let digest = context.finish();
    let mut sum = Sum::default();
    for (to, from) in sum.iter_mut().zip(digest.as_ref()) {
        *to = *from;
    }
    sum
}

/// Returns a file name derived from the parts, in hexadecimal digits.
pub fn name(parts: &[&[u8]]) -> String {
    sum(parts).iter().map(|byte| format!("{byte:02x}")).collect()
}
