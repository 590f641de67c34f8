//! Which packets of a path arrived: what is told to the sender, and what tells a second copy from the first.
//!
//! One bit a packet, in a ring of [`REPLAY_PACKETS`] bits that ends at the newest.

use crate::limits::{ACK_RUNS_MAX, REPLAY_PACKETS};

const WORD_BITS: u64 = 64;
const SPAN: u64 = REPLAY_PACKETS as u64;

#[derive(Clone, Debug)]
pub(crate) struct Arrived {
    bits: Vec<u64>,
    /// The newest.
    largest: Option<u64>,
}

impl Arrived {
    pub(crate) fn new() -> Arrived {
        Arrived { bits: vec![0; REPLAY_PACKETS / WORD_BITS as usize], largest: None }
    }

    pub(crate) fn largest(&self) -> Option<u64> {
        self.largest
    }

    fn word(counter: u64) -> usize {
        (counter % SPAN / WORD_BITS) as usize
    }

    fn holds(&self, counter: u64) -> bool {
        let word = self.bits.get(Self::word(counter)).copied().unwrap_or(0);
        word >> (counter % WORD_BITS) & 1 == 1
    }

    /// Whether a packet did not arrive before, and is not so old that this is not known any more.
    pub(crate) fn is_new(&self, counter: u64) -> bool {
        match self.largest {
            None => true,
            Some(largest) if counter > largest => true,
            Some(largest) => counter + SPAN > largest && !self.holds(counter),
        }
    }

    /// Notes a new one. Returns whether it is the one that follows the newest.
    pub(crate) fn note(&mut self, counter: u64) -> bool {
        let expected = self.largest.map_or(0, |largest| largest + 1);
        if counter >= expected {
            if counter - expected >= SPAN {
                self.bits.fill(0);
            } else {
                (expected..counter).for_each(|skipped| self.put(skipped, false));
            }
            self.largest = Some(counter);
        }
        self.put(counter, true);
        counter == expected
    }

    fn put(&mut self, counter: u64, arrived: bool) {
        if let Some(word) = self.bits.get_mut(Self::word(counter)) {
            let bit = 1 << (counter % WORD_BITS);
            *word = if arrived { *word | bit } else { *word & !bit };
        }
    }

    /// The end (exclusive, downwards) of the run of equal bits that begins at `top`, not below `floor`.
    fn run_end(&self, top: u64, floor: u64, value: bool) -> u64 {
        let mut at = top;
        loop {
            let word = self.bits.get(Self::word(at)).copied().unwrap_or(0);
            // The bit of `at` becomes the highest.
            let above = WORD_BITS - 1 - at % WORD_BITS;
            let differing = if value { !word } else { word };
            let shifted = differing << above;
            let equal = u64::from(shifted.leading_zeros()).min(WORD_BITS - above);
            if at < floor + equal {
                return floor;
            }
            if equal < WORD_BITS - above {
                return at - equal + 1;
            }
            at -= equal;
        }
    }

    /// The newest runs of packets that arrived, first and last, from the newest down.
    pub(crate) fn runs(&self) -> Vec<(u64, u64)> {
        let mut runs = Vec::with_capacity(4);
        let Some(mut top) = self.largest else {
            return runs;
        };
        let floor = (top + 1).saturating_sub(SPAN);
        while runs.len() < ACK_RUNS_MAX {
            let first = self.run_end(top, floor, true);
            runs.push((first, top));
            if first <= floor {
                break;
            }
            let gap = self.run_end(first - 1, floor, false);
            if gap <= floor {
                break;
            }
            top = gap - 1;
        }
        runs
    }
}

#[cfg(test)]
mod tests;
