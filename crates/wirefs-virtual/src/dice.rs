//! Seeded random choices.

use wirefs_op::mix::{GOLDEN, mix};

/// A source of random choices: the same for a seed on every machine.
///
/// # Source
/// SplitMix64: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators" (2014).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Returns the generator of this seed.
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// Returns 64 random bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// Returns a number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.word().checked_rem(end).unwrap_or(0)
    }

    /// Returns a number from `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least).saturating_add(1))
    }

    /// Returns an index below `length`; 0 if `length` is 0.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// Returns true in `part` of `whole` cases.
    pub fn chance(&mut self, part: u64, whole: u64) -> bool {
        self.below(whole) < part
    }

    /// Returns a random element.
    pub fn one_of<T: Copy + Default>(&mut self, choices: &[T]) -> T {
        let at = self.index(choices.len());
        choices.get(at).copied().unwrap_or_default()
    }

    /// Returns random bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.word().to_le_bytes()).flatten().take(length).collect()
    }
}

#[cfg(test)]
mod tests;
