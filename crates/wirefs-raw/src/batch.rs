//! Packets that are received, changed in place and sent on together, without a copy or an allocation in between.
//!
//! ```text
//! slot:  | room for the longest IPv4 header | echo header 8 | payload …
//! ```

use std::ops::Range;
use std::time::Duration;

use crate::icmp::header::Sequence;
use crate::limits::{
    BATCH_PACKETS_MAX, ECHO_HEADER_BYTES, IPV4_HEADER_BYTES, IPV4_HEADER_BYTES_MAX, PAYLOAD_BYTES_MAX,
};

/// Slots begin at multiples of this, a cache line, in bytes.
const SLOT_ALIGNMENT: usize = 64;
/// Where an IPv4 packet is received in its slot, so that its payload begins at a multiple of 4 as [`MESSAGE_AT`] does.
pub(crate) const IPV4_AT: usize = MESSAGE_AT - IPV4_HEADER_BYTES;
/// Where an echo message without an IP header in front begins in its slot.
pub(crate) const MESSAGE_AT: usize = IPV4_HEADER_BYTES_MAX;

/// What is to happen with a packet of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It was received and nobody looked at it yet.
    Arrived { waited: Duration },
    /// It is to be sent; its header is not written yet.
    Leaving(Sequence),
    /// It is to be sent as it stands.
    Written,
    /// It was sent, or is not wanted.
    Done,
}

/// Where a packet's echo message lies in the arena, and its fate.
#[derive(Clone, Debug)]
struct Packet {
    message: Range<usize>,
    fate: Fate,
}

/// Up to [`BATCH_PACKETS_MAX`] packets and the memory they lie in.
///
/// Drive it: [`EchoSocket::receive`](crate::EchoSocket::receive) fills it; [`exchange`](Batch::exchange) decides which
/// of them go out again, [`push`](Batch::push) adds new ones; [`EchoSocket::send`](crate::EchoSocket::send) sends them,
/// again until [`is_sent`](Batch::is_sent).
#[derive(Debug)]
pub struct Batch {
    arena: Vec<u8>,
    slot_bytes: usize,
    packets: Vec<Packet>,
}

impl Batch {
    /// Makes an empty batch for packets with up to this many bytes of payload; more than an IPv4 packet has room for
    /// counts as that.
    pub fn new(payload_bytes: usize) -> Batch {
        let message_bytes = ECHO_HEADER_BYTES + payload_bytes.min(PAYLOAD_BYTES_MAX);
        let slot_bytes = (MESSAGE_AT + message_bytes).next_multiple_of(SLOT_ALIGNMENT);
        Batch {
            arena: vec![0; slot_bytes * BATCH_PACKETS_MAX],
            slot_bytes,
            packets: Vec::with_capacity(BATCH_PACKETS_MAX),
        }
    }

    /// Forgets all packets, sent or not.
    pub fn clear(&mut self) {
        self.packets.clear();
    }

    /// Whether nothing in it waits to be sent.
    pub fn is_sent(&self) -> bool {
        !self.packets.iter().any(Packet::is_leaving)
    }

    /// Whether no further packet finds room.
    pub fn is_full(&self) -> bool {
        self.packets.len() >= BATCH_PACKETS_MAX
    }

    /// Shows each packet that arrived once: its payload, to be changed in place, and how long it waited in the socket
    /// (zero where that is not known). Those for which a sequence number comes back are to be sent.
    pub fn exchange(&mut self, mut decide: impl FnMut(&mut [u8], Duration) -> Option<Sequence>) {
        for packet in &mut self.packets {
            let Fate::Arrived { waited } = packet.fate else {
                continue;
            };
            let payload = packet.message.start + ECHO_HEADER_BYTES..packet.message.end;
            let sequence = self.arena.get_mut(payload).and_then(|payload| decide(payload, waited));
            packet.fate = sequence.map_or(Fate::Done, Fate::Leaving);
        }
    }

    /// Shows the payload of each packet that arrived, as often as wanted; [`exchange`](Batch::exchange) shows them as well.
    pub fn look(&self, mut show: impl FnMut(&[u8])) {
        for packet in self.packets.iter().filter(|packet| matches!(packet.fate, Fate::Arrived { .. })) {
            let payload = packet.message.start + ECHO_HEADER_BYTES..packet.message.end;
            show(self.arena.get(payload).unwrap_or_default());
        }
    }

    /// Adds a packet to be sent: `write` gets room for its payload and says how many bytes of it to send, or none.
    /// Returns whether one was added; a full batch adds none and does not call.
    pub fn push(&mut self, write: impl FnOnce(&mut [u8]) -> Option<(usize, Sequence)>) -> bool {
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
        self.packets.push(Packet { message, fate: Fate::Leaving(sequence) });
        true
    }

    /// The memory to receive into, from an empty batch on, and the size of a slot.
    pub(crate) fn slots(&mut self) -> (&mut [u8], usize) {
        self.packets.clear();
        (&mut self.arena, self.slot_bytes)
    }

    /// The bytes received at `at` within slot `index`.
    pub(crate) fn received(&self, index: usize, at: usize, bytes: usize) -> &[u8] {
        let start = index * self.slot_bytes + at;
        self.arena.get(start..start + bytes.min(self.slot_bytes - at)).unwrap_or_default()
    }

    /// Notes what was received in the next slot: an echo message of `bytes` bytes that begins at `at`; or, so that the
    /// slots stay in step, nothing that is wanted.
    pub(crate) fn note(&mut self, message: Option<(usize, usize)>, waited: Duration) {
        let slot = self.packets.len() * self.slot_bytes;
        let packet = match message {
            Some((at, bytes)) if bytes >= ECHO_HEADER_BYTES => {
                Packet { message: slot + at..slot + at + bytes, fate: Fate::Arrived { waited } }
            }
            Some(_) | None => Packet { message: slot..slot, fate: Fate::Done },
        };
        self.packets.push(packet);
    }

    /// Writes the headers that are still to be written.
    pub(crate) fn write_headers(&mut self, mut write: impl FnMut(&mut [u8], Sequence)) {
        for packet in &mut self.packets {
            if let Fate::Leaving(sequence) = packet.fate {
                if let Some(message) = self.arena.get_mut(packet.message.clone()) {
                    write(message, sequence);
                }
                packet.fate = Fate::Written;
            }
        }
    }

    /// Puts the places of what is to be sent, in order, into `ranges`, and returns how many there are.
    pub(crate) fn leaving(&self, ranges: &mut [Range<usize>; BATCH_PACKETS_MAX]) -> usize {
        let leaving = self.packets.iter().filter(|packet| packet.is_leaving());
        ranges.iter_mut().zip(leaving).map(|(range, packet)| *range = packet.message.clone()).count()
    }

    /// The memory that these places lie in.
    pub(crate) fn arena(&self) -> &[u8] {
        &self.arena
    }

    /// Notes that the first `count` of what was to be sent is done with.
    pub(crate) fn take_off(&mut self, count: usize) {
        for packet in self.packets.iter_mut().filter(|packet| packet.is_leaving()).take(count) {
            packet.fate = Fate::Done;
        }
    }
}

impl Packet {
    fn is_leaving(&self) -> bool {
        matches!(self.fate, Fate::Leaving(_) | Fate::Written)
    }
}

#[cfg(test)]
mod tests;
