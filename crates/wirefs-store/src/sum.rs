//! Checksums: the first half of SHA-256, which hardware computes. They tell damage, not malice: who may write here is the user.

use ring::digest::{Context, SHA256};

/// Bytes of a checksum.
pub const SUM_BYTES: usize = 16;

/// A checksum.
pub type Sum = [u8; SUM_BYTES];

/// The checksum of parts that stand behind each other.
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

/// A name for a file that stands for these parts, in hexadecimal digits.
pub fn name(parts: &[&[u8]]) -> String {
    sum(parts).iter().map(|byte| format!("{byte:02x}")).collect()
}
