//! Batches of frames with shared memory.
//!
//! ```text
//! slot:  | destination 6 | source 6 | type 2 | payload …
//! ```

use std::ops::Range;

use crate::ether::HardwareAddress;
use crate::limits::{BATCH_PACKETS_MAX, ETHERNET_HEADER_BYTES, FRAME_PAYLOAD_BYTES_MAX};
use crate::sys::ReceivedDatagram;

/// Slots are aligned to a cache line, in bytes.
const SLOT_ALIGNMENT: usize = 64;

/// Up to [`BATCH_PACKETS_MAX`] frames, either received or to be sent.
///
/// Drive it: [`EtherSocket::receive`](crate::EtherSocket::receive) fills it, and [`each`](Frames::each)
/// visits the frames. To send, [`clear`](Frames::clear) it, [`push`](Frames::push) frames, and send until
/// [`is_sent`](Frames::is_sent).
#[derive(Debug)]
pub struct Frames {
    arena: Vec<u8>,
    slot_bytes: usize,
    /// Number of used slots.
    used: usize,
    /// Received frames, or frames to be sent.
    frames: Vec<Range<usize>>,
}

impl Frames {
    /// Creates an empty batch for payloads of up to `payload_bytes`, at most [`FRAME_PAYLOAD_BYTES_MAX`].
    pub fn new(payload_bytes: usize) -> Frames {
        let frame_bytes = ETHERNET_HEADER_BYTES + payload_bytes.min(FRAME_PAYLOAD_BYTES_MAX);
        let slot_bytes = frame_bytes.next_multiple_of(SLOT_ALIGNMENT);
        Frames {
            arena: vec![0; slot_bytes * BATCH_PACKETS_MAX],
            slot_bytes,
            used: 0,
            frames: Vec::with_capacity(BATCH_PACKETS_MAX),
        }
    }

    /// Removes all frames.
    pub fn clear(&mut self) {
        self.used = 0;
        self.frames.clear();
    }

    /// Returns whether no frame waits to be sent.
    pub fn is_sent(&self) -> bool {
        self.frames.is_empty()
    }

    /// Returns whether the batch is full.
    pub fn is_full(&self) -> bool {
        self.used >= BATCH_PACKETS_MAX
    }

    /// Calls `look` with the source and the payload of each received frame. The payload may be changed in
    /// place. Short frames may be padded with zeros.
    pub fn each(&mut self, mut look: impl FnMut(HardwareAddress, &mut [u8])) {
        for frame in self.frames.drain(..) {
            let Some((header, payload)) =
                self.arena.get_mut(frame).and_then(|frame| frame.split_at_mut_checked(ETHERNET_HEADER_BYTES))
            else {
                continue;
            };
            if let Some(source) = header.get(6..).and_then(<[u8]>::first_chunk) {
                look(HardwareAddress(*source), payload);
            }
        }
    }

    /// Adds a frame: `write` fills the payload and returns the destination and the size, or `None`. Returns
    /// whether a frame was added. A full batch does not call `write`.
    pub fn push(&mut self, write: impl FnOnce(&mut [u8]) -> Option<(HardwareAddress, usize)>) -> bool {
        let start = self.used * self.slot_bytes;
        let slot = self.arena.get_mut(start..start + self.slot_bytes);
        let Some((header, payload)) = slot.and_then(|slot| slot.split_at_mut_checked(ETHERNET_HEADER_BYTES))
        else {
            return false;
        };
        let room = payload.len();
        let Some((destination, bytes)) = write(payload) else {
            return false;
        };
        if let Some(field) = header.first_chunk_mut() {
            *field = destination.0;
        }
        self.frames.push(start..start + ETHERNET_HEADER_BYTES + bytes.min(room));
        self.used += 1;
        true
    }

    /// Empties the batch and returns its memory and the size of a slot.
    pub(crate) fn slots(&mut self) -> (&mut [u8], usize) {
        self.clear();
        (&mut self.arena, self.slot_bytes)
    }

    /// Records the contents of the next slot. Returns whether it is a whole frame for this address.
    pub(crate) fn note(&mut self, received: &ReceivedDatagram, own: HardwareAddress) -> bool {
        let start = self.used * self.slot_bytes;
        self.used += 1;
        let frame = start..start + received.bytes.min(self.slot_bytes);
        let is_ours = self.arena.get(frame.clone()).is_some_and(|frame| frame.starts_with(&own.0));
        let is_whole = !received.is_cut && received.bytes >= ETHERNET_HEADER_BYTES;
        if is_ours && is_whole {
            self.frames.push(frame);
        }
        is_ours && is_whole
    }

    /// Writes source and type into the frames to be sent.
    pub(crate) fn write_headers(&mut self, source: HardwareAddress, ether_type: u16) {
        for frame in &self.frames {
            let rest =
                self.arena.get_mut(frame.clone()).and_then(|frame| frame.get_mut(6..ETHERNET_HEADER_BYTES));
            if let Some((from, kind)) = rest.and_then(<[u8]>::split_first_chunk_mut) {
                *from = source.0;
                kind.copy_from_slice(&ether_type.to_be_bytes());
            }
        }
    }

    /// Writes the positions of the frames to be sent into `ranges`, and returns their number.
    pub(crate) fn queued(&self, ranges: &mut [Range<usize>; BATCH_PACKETS_MAX]) -> usize {
        ranges.iter_mut().zip(&self.frames).map(|(range, frame)| *range = frame.clone()).count()
    }

    /// Returns the frame to be sent if there is exactly one.
    pub(crate) fn only(&self) -> Option<&[u8]> {
        match self.frames.as_slice() {
            [frame] => self.arena.get(frame.clone()),
            _ => None,
        }
    }

    /// Returns the memory of the frames.
    pub(crate) fn arena(&self) -> &[u8] {
        &self.arena
    }

    /// Removes the first `count` frames to be sent.
    pub(crate) fn mark_sent(&mut self, count: usize) {
        self.frames.drain(..count.min(self.frames.len()));
    }
}
