//! A small seeded random number generator.

use crate::profile::Probability;
use wirefs_virtual::Dice;

/// The xoshiro256++ generator, seeded by SplitMix64.
///
/// # Source
/// D. Blackman, S. Vigna, "Scrambled linear pseudorandom number generators" (2021), implemented from the recurrences.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// Returns the generator of `seed`; equal seeds give equal sequences.
    pub fn new(seed: u64) -> Random {
        let mut mix = Dice::new(seed);
        Random { state: std::array::from_fn(|_| mix.word()) }
    }

    /// Returns 64 uniform bits.
    pub fn next_u64(&mut self) -> u64 {
        let [s0, s1, s2, s3] = self.state;
        let drawn = s0.wrapping_add(s3).rotate_left(23).wrapping_add(s0);
        let (t2, t3) = (s2 ^ s0, s3 ^ s1);
        self.state = [s0 ^ t3, s1 ^ t2, t2 ^ (s1 << 17), t3.rotate_left(45)];
        drawn
    }

    /// Returns true with this probability; always consumes exactly one number of the sequence.
    pub fn chance(&mut self, probability: Probability) -> bool {
        // A double holds 53 bits exactly, so the value is in [0, 1), and probability 1 always returns true.
        let unit = (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        unit < probability.value()
    }

    /// Returns a number below `bound`, or 0 if `bound` is 0; always consumes exactly one number of the sequence.
    pub fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.next_u64()) * u128::from(bound);
        // The high half of the product is below `bound`, so it fits.
        (wide >> 64) as u64
    }
}

#[cfg(test)]
mod tests;
