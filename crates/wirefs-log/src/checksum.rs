//! The checksums of records. They detect damage, not attacks: only the user can write to the files.

use ring::digest::{Context, SHA256};

/// A checksum under computation.
pub trait Checksum: Clone + Default {
    /// The length of a sum, in bytes.
    const BYTES: usize;
    /// A sum, as it is written.
    type Sum: AsRef<[u8]>;

    /// Adds the next bytes.
    fn add(&mut self, bytes: &[u8]);
    /// Returns the sum of all added bytes.
    fn value(self) -> Self::Sum;

    /// Returns the sum of consecutive parts.
    fn of(parts: &[&[u8]]) -> Self::Sum {
        let mut sum = Self::default();
        parts.iter().for_each(|part| sum.add(part));
        sum.value()
    }
}

/// The polynomial of Castagnoli, its bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;
/// Bytes taken at a time.
const STEP: usize = 8;

/// `TABLES[k][byte]`: the contribution of a byte that `k` more bytes follow.
static TABLES: [[u32; 256]; STEP] = tables();

const fn tables() -> [[u32; 256]; STEP] {
    let mut tables = [[0; 256]; STEP];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u32;
        let mut bit = 0;
        while bit < 8 * STEP {
            sum = if sum & 1 == 1 { (sum >> 1) ^ POLYNOMIAL } else { sum >> 1 };
            tables[bit / 8][byte] = sum;
            bit += 1;
        }
        byte += 1;
    }
    tables
}

/// CRC-32C, eight bytes at a time. A sum is little endian.
///
/// # Source
/// RFC 3720, 12.1.
#[derive(Clone, Copy, Debug)]
pub struct Crc32c(u32);

impl Default for Crc32c {
    fn default() -> Crc32c {
        Crc32c(!0)
    }
}

impl Checksum for Crc32c {
    const BYTES: usize = 4;
    type Sum = [u8; Self::BYTES];

    fn add(&mut self, bytes: &[u8]) {
        let [t0, t1, t2, t3, t4, t5, t6, t7] = &TABLES;
        let mut sum = self.0;
        let (steps, rest) = bytes.as_chunks::<STEP>();
        for &[a, b, c, d, e, f, g, h] in steps {
            let [s0, s1, s2, s3] = sum.to_le_bytes();
            sum = t7[usize::from(a ^ s0)]
                ^ t6[usize::from(b ^ s1)]
                ^ t5[usize::from(c ^ s2)]
                ^ t4[usize::from(d ^ s3)]
                ^ t3[usize::from(e)]
                ^ t2[usize::from(f)]
                ^ t1[usize::from(g)]
                ^ t0[usize::from(h)];
        }
        for byte in rest {
            sum = (sum >> 8) ^ t0[usize::from(sum as u8 ^ byte)];
        }
        self.0 = sum;
    }

    fn value(self) -> Self::Sum {
        (!self.0).to_le_bytes()
    }
}

/// The first half of SHA-256, which has hardware support.
#[derive(Clone)]
pub struct HalfSha256(Context);

impl Default for HalfSha256 {
    fn default() -> HalfSha256 {
        HalfSha256(Context::new(&SHA256))
    }
}

impl Checksum for HalfSha256 {
    const BYTES: usize = 16;
    type Sum = [u8; Self::BYTES];

    fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn value(self) -> Self::Sum {
        let digest = self.0.finish();
        // INVARIANT: SHA-256 has 32 bytes.
        digest.as_ref().first_chunk().copied().unwrap_or_default()
    }
}

/// Returns a file name derived from consecutive parts: their [`HalfSha256`] in hexadecimal digits.
pub fn hash_name(parts: &[&[u8]]) -> String {
    HalfSha256::of(parts).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
