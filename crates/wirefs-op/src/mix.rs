//! Hashes for names, versions and seeded generators. Not for secrets.

/// The increment of a SplitMix64 generator: the golden ratio in 64 bits.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes 64 bits, bijectively: different words stay different.
///
/// # Source
/// The finalizer of SplitMix64: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators" (2014).
pub const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Hashes the bytes of consecutive parts to 64 bits. Files on disk contain such hashes.
///
/// # Source
/// FNV-1a: G. Fowler, L. C. Noll, K.-P. Vo, D. Eastlake, "The FNV non-cryptographic hash algorithm".
pub fn fnv1a(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.iter());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::{GOLDEN, fnv1a, mix};

    /// The first outputs of the reference implementation for seed 0.
    #[test]
    fn mixed_multiples_are_the_outputs_of_splitmix64() {
        let outputs = [1u64, 2, 3].map(|number| mix(number.wrapping_mul(GOLDEN)));
        assert_eq!(outputs, [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]);
    }

    #[test]
    fn fnv1a_gives_the_published_hashes() {
        assert_eq!(fnv1a(&[]), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(&[b"a"]), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(&[b"foo", b"", b"bar"]), 0x8594_4171_f739_67e8);
    }
}
