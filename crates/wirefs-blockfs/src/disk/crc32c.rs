//! The checksum of records: CRC-32C.

/// The Castagnoli polynomial, bit-reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ POLYNOMIAL } else { sum >> 1 };
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
}

/// Returns the checksum of the concatenated parts.
pub(super) fn crc32c(parts: &[&[u8]]) -> u32 {
    let bytes = parts.iter().flat_map(|part| part.iter());
    !bytes.fold(!0, |sum, &byte| (sum >> 8) ^ TABLE.get(usize::from(sum as u8 ^ byte)).copied().unwrap_or(0))
}
