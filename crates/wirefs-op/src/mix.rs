//! A mixing function for hashes, versions and seeded generators. Not for secrets.

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

#[cfg(test)]
mod tests {
    use super::{GOLDEN, mix};

    /// The first outputs of the reference implementation for seed 0.
    #[test]
    fn mixed_multiples_are_the_outputs_of_splitmix64() {
        let outputs = [1u64, 2, 3].map(|number| mix(number.wrapping_mul(GOLDEN)));
        assert_eq!(outputs, [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]);
    }
}
