//! Batches of packets that are received, changed in place and sent again, without a copy or an allocation.
//!
//! ```text
//! slot:  | room for the longest IPv4 header | echo header 8 | payload …
//! ```

use std::ops::Range;
use std::time::Duration;

use crate::icmp::header::EchoSequence;
use crate::limits::{
    BATCH_PACKETS_MAX, ECHO_HEADER_BYTES, IPV4_HEADER_BYTES, IPV4_HEADER_BYTES_MAX, PAYLOAD_BYTES_MAX,
};

/// Slots are aligned to a cache line, in bytes.
const SLOT_ALIGNMENT: usize = 64;
/// Offset of a received IPv4 packet in its slot, so that its payload is aligned to 4 bytes as with
/// [`MESSAGE_AT`].
pub(crate) const IPV4_AT: usize = MESSAGE_AT - IPV4_HEADER_BYTES;
/// Offset of an echo message without an IP header in its slot.
pub(crate) const MESSAGE_AT: usize = IPV4_HEADER_BYTES_MAX;

/// State of a packet in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacketState {
    /// Received and not yet processed.
    Arrived { waited: Duration },
    /// To be sent; its header is not written yet.
    Queued(EchoSequence),
    /// To be sent as it is.
    Written,
    /// Sent, or not needed.
    Done,
}

/// Position of an echo message in the arena, and its state.
#[derive(Clone, Debug)]
struct Packet {
    message: Range<usize>,
    state: PacketState,
}

/// Up to [`BATCH_PACKETS_MAX`] packets and their memory.
///
/// Drive it: [`EchoSocket::receive`](crate::EchoSocket::receive) fills it.
/// [`exchange`](PacketBatch::exchange) selects the packets to send again, and [`push`](PacketBatch::push)
/// adds new ones. [`EchoSocket::send`](crate::EchoSocket::send) sends them; repeat it until
/// [`is_sent`](PacketBatch::is_sent).
#[derive(Debug)]
pub struct PacketBatch {
    arena: Vec<u8>,
    slot_bytes: usize,
    packets: Vec<Packet>,
}

impl PacketBatch {
    /// Creates an empty batch for payloads of up to `payload_bytes`, capped at the IPv4 maximum.
    pub fn new(payload_bytes: usize) -> PacketBatch {
        let message_bytes = ECHO_HEADER_BYTES + payload_bytes.min(PAYLOAD_BYTES_MAX);
        let slot_bytes = (MESSAGE_AT + message_bytes).next_multiple_of(SLOT_ALIGNMENT);
        PacketBatch {
            arena: vec![0; slot_bytes * BATCH_PACKETS_MAX],
            slot_bytes,
            packets: Vec::with_capacity(BATCH_PACKETS_MAX),
        }
    }

    /// Removes all packets, sent or not.
    pub fn clear(&mut self) {
        self.packets.clear();
    }

    /// Returns whether no packet waits to be sent.
    pub fn is_sent(&self) -> bool {
        !self.packets.iter().any(Packet::is_queued)
    }

    /// Returns whether the batch is full.
    pub fn is_full(&self) -> bool {
        self.packets.len() >= BATCH_PACKETS_MAX
    }

    /// Calls `decide` once for each received packet, with its payload and its time in the socket (zero if
    /// unknown). The payload may be changed in place. Packets for which it returns a sequence number are sent
    /// again.
    pub fn exchange(&mut self, mut decide: impl FnMut(&mut [u8], Duration) -> Option<EchoSequence>) {
        for packet in &mut self.packets {
            let PacketState::Arrived { waited } = packet.state else {
                continue;
            };
            let payload = packet.message.start + ECHO_HEADER_BYTES..packet.message.end;
            let sequence = self.arena.get_mut(payload).and_then(|payload| decide(payload, waited));
            packet.state = sequence.map_or(PacketState::Done, PacketState::Queued);
        }
    }

    /// Calls `show` with the payload of each received packet. [`exchange`](PacketBatch::exchange) visits them
    /// again.
    pub fn for_each_arrived(&self, mut show: impl FnMut(&[u8])) {
        for packet in self.packets.iter().filter(|packet| matches!(packet.state, PacketState::Arrived { .. }))
        {
            let payload = packet.message.start + ECHO_HEADER_BYTES..packet.message.end;
            show(self.arena.get(payload).unwrap_or_default());
        }
    }

    /// Adds a packet: `write` fills the payload and returns its size, or `None`. Returns whether a packet was
    /// added. A full batch does not call `write`.
    pub fn push(&mut self, write: impl FnOnce(&mut [u8]) -> Option<(usize, EchoSequence)>) -> bool {
        if self.is_full() {
            return false;
        }
        let message = self.packets.len() * self.slot_bytes + MESSAGE_AT;
        let end = (self.packets.len() + 1) * self.slot_bytes;
        let payload = message + ECHO_HEADER_BYTES;
        let Some((bytes, sequence)) = self.arena.get_mut(payload..end).and_then(write) else {
            return false;
        };
        let message = message..(payload + bytes).min(end);
        self.packets.push(Packet { message, state: PacketState::Queued(sequence) });
        true
    }

    /// Empties the batch and returns its memory and the size of a slot.
    pub(crate) fn slots(&mut self) -> (&mut [u8], usize) {
        self.packets.clear();
        (&mut self.arena, self.slot_bytes)
    }

    /// Returns the bytes received at `at` in slot `index`.
    pub(crate) fn received(&self, index: usize, at: usize, bytes: usize) -> &[u8] {
        let start = index * self.slot_bytes + at;
        self.arena.get(start..start + bytes.min(self.slot_bytes - at)).unwrap_or_default()
    }

    /// Records the contents of the next slot: an echo message of `bytes` bytes at `at`, or `None` for a
    /// packet to be ignored.
    pub(crate) fn note(&mut self, message: Option<(usize, usize)>, waited: Duration) {
        let slot = self.packets.len() * self.slot_bytes;
        let packet = match message {
            Some((at, bytes)) if bytes >= ECHO_HEADER_BYTES => {
                Packet { message: slot + at..slot + at + bytes, state: PacketState::Arrived { waited } }
            }
            Some(_) | None => Packet { message: slot..slot, state: PacketState::Done },
        };
        self.packets.push(packet);
    }

    /// Writes the missing headers.
    pub(crate) fn write_headers(&mut self, mut write: impl FnMut(&mut [u8], EchoSequence)) {
        for packet in &mut self.packets {
            if let PacketState::Queued(sequence) = packet.state {
                if let Some(message) = self.arena.get_mut(packet.message.clone()) {
                    write(message, sequence);
                }
                packet.state = PacketState::Written;
            }
        }
    }

    /// Writes the positions of the packets to be sent into `ranges`, in order, and returns their number.
    pub(crate) fn queued(&self, ranges: &mut [Range<usize>; BATCH_PACKETS_MAX]) -> usize {
        let queued = self.packets.iter().filter(|packet| packet.is_queued());
        ranges.iter_mut().zip(queued).map(|(range, packet)| *range = packet.message.clone()).count()
    }

    /// Returns the memory of the packets.
    pub(crate) fn arena(&self) -> &[u8] {
        &self.arena
    }

    /// Marks the first `count` packets to be sent as done.
    pub(crate) fn mark_sent(&mut self, count: usize) {
        for packet in self.packets.iter_mut().filter(|packet| packet.is_queued()).take(count) {
            packet.state = PacketState::Done;
        }
    }
}

impl Packet {
    fn is_queued(&self) -> bool {
        matches!(self.state, PacketState::Queued(_) | PacketState::Written)
    }
}

#[cfg(test)]
mod tests;
