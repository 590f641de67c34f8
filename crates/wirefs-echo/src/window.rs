//! One bit for each packet that is out: what a store without an index needs to take each packet once.

use crate::packet::Sequence;

/// The packets sent to one host last, as many as there are bits.
#[derive(Debug)]
pub(crate) struct Window {
    words: Vec<u64>,
    /// The number after the highest sent.
    next: u64,
}

impl Window {
    /// Makes one for this many packets, rounded up to a power of two of at least 64.
    pub(crate) fn new(packets: usize) -> Window {
        Window { words: vec![0; packets.next_power_of_two().div_ceil(64)], next: 0 }
    }

    /// Notes that the packet with this number, the next one, goes out. What was sent a whole window ago is forgotten.
    pub(crate) fn send(&mut self, sequence: Sequence) {
        self.next = sequence.0 + 1;
        let (word, bit) = self.place(sequence);
        if let Some(word) = self.words.get_mut(word) {
            *word |= bit;
        }
    }

    /// Takes a packet in: whether it was out. From then on it is not.
    pub(crate) fn take(&mut self, sequence: Sequence) -> bool {
        if sequence.0 >= self.next || self.next - sequence.0 > self.words.len() as u64 * 64 {
            return false;
        }
        let (word, bit) = self.place(sequence);
        let Some(word) = self.words.get_mut(word) else {
            return false;
        };
        let was_out = *word & bit != 0;
        *word &= !bit;
        was_out
    }

    /// The memory that it takes, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    fn place(&self, sequence: Sequence) -> (usize, u64) {
        let number = sequence.0 & (self.words.len() as u64 * 64 - 1);
        ((number / 64) as usize, 1 << (number % 64))
    }
}

#[cfg(test)]
mod tests;
