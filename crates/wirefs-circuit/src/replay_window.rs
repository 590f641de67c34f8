//! The packets received on a path: the source of ACK ranges, and the anti-replay window (as in RFC 4303,
//! section 3.4.3).
//!
//! One bit per packet, in a ring of [`REPLAY_PACKETS`] bits that ends at the largest packet number.

use crate::limits::{ACK_RANGES_MAX, REPLAY_PACKETS};

const WORD_BITS: u64 = 64;
const SPAN: u64 = REPLAY_PACKETS as u64;

/// The anti-replay window of one path.
#[derive(Clone, Debug)]
pub(crate) struct ReplayWindow {
    bits: Vec<u64>,
    /// The largest packet number.
    largest: Option<u64>,
    /// The first packet of the run that ends with `largest`. It may be older than the window.
    run_first: u64,
}

impl ReplayWindow {
    pub(crate) fn new() -> ReplayWindow {
        ReplayWindow { bits: vec![0; REPLAY_PACKETS / WORD_BITS as usize], largest: None, run_first: 0 }
    }

    pub(crate) fn largest(&self) -> Option<u64> {
        self.largest
    }

    fn word(packet_number: u64) -> usize {
        (packet_number % SPAN / WORD_BITS) as usize
    }

    fn holds(&self, packet_number: u64) -> bool {
        let word = self.bits.get(Self::word(packet_number)).copied().unwrap_or(0);
        word >> (packet_number % WORD_BITS) & 1 == 1
    }

    /// Returns whether a packet is new: not received before, and not older than the window.
    pub(crate) fn is_new(&self, packet_number: u64) -> bool {
        match self.largest {
            None => true,
            Some(largest) if packet_number > largest => true,
            Some(largest) => packet_number + SPAN > largest && !self.holds(packet_number),
        }
    }

    /// Records a new packet. Returns whether it directly follows the largest one.
    pub(crate) fn record(&mut self, packet_number: u64) -> bool {
        let expected = self.largest.map_or(0, |largest| largest + 1);
        if packet_number >= expected {
            if packet_number - expected >= SPAN {
                self.bits.fill(0);
            } else {
                (expected..packet_number).for_each(|skipped| self.put(skipped, false));
            }
            self.largest = Some(packet_number);
            if packet_number > expected {
                self.run_first = packet_number;
            }
        }
        self.put(packet_number, true);
        if packet_number + 1 == self.run_first {
            let floor = expected.saturating_sub(SPAN);
            self.run_first = self.run_end(packet_number, floor, true);
        }
        packet_number == expected
    }

    fn put(&mut self, packet_number: u64, arrived: bool) {
        if let Some(word) = self.bits.get_mut(Self::word(packet_number)) {
            let bit = 1 << (packet_number % WORD_BITS);
            *word = if arrived { *word | bit } else { *word & !bit };
        }
    }

    /// Returns the end (exclusive, downwards) of the run of equal bits from `top`, at least `floor`.
    fn run_end(&self, top: u64, floor: u64, value: bool) -> u64 {
        let mut at = top;
        loop {
            let word = self.bits.get(Self::word(at)).copied().unwrap_or(0);
            // Shifts the bit of `at` to the highest position.
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

    /// Returns the newest ACK ranges (first and last packet number), in descending order.
    ///
    /// # Cost
    /// Constant without recent loss; this runs for nearly each packet.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
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
        std::iter::from_fn(run).take(ACK_RANGES_MAX)
    }
}

#[cfg(test)]
mod tests;
