//! One bit per packet in flight, so that a store without an index accepts each packet once.

use crate::packet::PacketSequence;

/// The last packets sent to one host, one bit each.
#[derive(Debug)]
pub(crate) struct PacketWindow {
    words: Vec<u64>,
    /// The number after the highest sent.
    next: u64,
}

impl PacketWindow {
    /// Creates a window for `packets`, rounded up to a power of two of at least 64.
    pub(crate) fn new(packets: usize) -> PacketWindow {
        PacketWindow { words: vec![0; packets.next_power_of_two().div_ceil(64)], next: 0 }
    }

    /// Records the transmission of the next packet. A packet sent a whole window ago is forgotten.
    pub(crate) fn send(&mut self, sequence: PacketSequence) {
        self.next = sequence.0 + 1;
        let (word, bit) = self.place(sequence);
        if let Some(word) = self.words.get_mut(word) {
            *word |= bit;
        }
    }

    /// Records a reply. Returns whether the packet was in flight.
    pub(crate) fn take(&mut self, sequence: PacketSequence) -> bool {
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

    /// Returns the memory use in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    fn place(&self, sequence: PacketSequence) -> (usize, u64) {
        let number = sequence.0 & (self.words.len() as u64 * 64 - 1);
        ((number / 64) as usize, 1 << (number % 64))
    }
}

#[cfg(test)]
mod tests;
