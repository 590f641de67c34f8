//! The checksum of headers and entries: CRC-32C, eight bytes at a time.

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
        while bit < 8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ POLYNOMIAL } else { sum >> 1 };
            bit += 1;
        }
        tables[0][byte] = sum;
        byte += 1;
    }
    let mut row = 1;
    while row < STEP {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[row - 1][byte];
            tables[row][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        row += 1;
    }
    tables
}

/// A checksum under computation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sum(u32);

impl Sum {
    pub(crate) fn new() -> Sum {
        Sum(!0)
    }

    /// Adds the next bytes.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
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

    pub(crate) fn value(self) -> u32 {
        !self.0
    }
}

/// Returns the checksum of consecutive parts.
pub(crate) fn sum(parts: &[&[u8]]) -> u32 {
    let mut sum = Sum::new();
    parts.iter().for_each(|part| sum.add(part));
    sum.value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_rfc_3720() {
        // Appendix B.4.
        assert_eq!(sum(&[&[0; 32]]), 0x8a91_36aa);
        assert_eq!(sum(&[&[0xff; 32]]), 0x62a8_ab43);
        let up: Vec<u8> = (0..32).collect();
        assert_eq!(sum(&[&up]), 0x46dd_794e);
        assert_eq!(sum(&[b"123456789"]), 0xe306_9283);
    }

    #[test]
    fn parts_may_be_cut_anywhere() {
        let all: Vec<u8> = (0..100_u8).map(|byte| byte.wrapping_mul(7)).collect();
        for position in 0..all.len() {
            let (front, back) = all.split_at(position);
            assert_eq!(sum(&[front, back]), sum(&[&all]));
        }
    }
}
