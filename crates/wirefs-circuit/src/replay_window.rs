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
    /// The first of the run that ends with it. It may be so old that its bit is another's now.
    run_first: u64,
}

impl Arrived {
    pub(crate) fn new() -> Arrived {
        Arrived { bits: vec![0; REPLAY_PACKETS / WORD_BITS as usize], largest: None, run_first: 0 }
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
            if counter > expected {
                self.run_first = counter;
            }
        }
        self.put(counter, true);
        if counter + 1 == self.run_first {
            let floor = expected.saturating_sub(SPAN);
            self.run_first = self.run_end(counter, floor, true);
        }
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
    ///
    /// # Cost
    /// Where nothing was lost of late, nothing is looked for: this is asked with nearly each packet.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (u64, u64)> {
        let floor = self.largest.map_or(0, |largest| (largest + 1).saturating_sub(SPAN));
        let mut top = self.largest;
        let run = move || {
            let last = top?;
            let first = match self.largest == top {
                true => self.run_first.max(floor),
                false => self.run_end(last, floor, true),
            };
            let gap = (first > floor).then(|| self.run_end(first - 1, floor, false));
            top = gap.filter(|gap| *gap > floor).map(|gap| gap - 1);
            Some((first, last))
        };
        std::iter::from_fn(run).take(ACK_RUNS_MAX)
    }
}

#[cfg(test)]
mod tests;
