//! A receive ring shared with the kernel (PACKET_RX_RING): a frame is detected without a system call.
//!
//! The ring has version 2 (TPACKET_V2). Version 3 does not suit requests: it delivers frames in blocks, or
//! after a timer of a millisecond.
//!
//! ```text
//! block:  slot | slot | … | rest
//! slot:   status 4 | length 4 | bytes 4 | offset of the frame 2 | …  frame
//! ```

use crate::error::RawError;
use crate::ether::{EtherSocket, HardwareAddress};
use crate::limits::{ETHERNET_HEADER_BYTES, FRAME_PAYLOAD_BYTES_MAX, RING_BYTES_MAX};
use crate::sys::{self, RingMemory, RingRequest, SLOT_HEADER_BYTES};

/// Alignment of slots in their block in bytes.
const SLOT_ALIGNMENT: usize = 64;
/// Size of a block in bytes: several slots of the largest frames.
const BLOCK_BYTES: usize = 1 << 16;

const _: () =
    assert!(BLOCK_BYTES >= 4 * (SLOT_HEADER_BYTES + FRAME_PAYLOAD_BYTES_MAX), "a block holds several slots");

/// The receive ring of one [`EtherSocket`]. All frames of the socket then arrive in the ring.
#[derive(Debug)]
pub struct Ring {
    memory: RingMemory,
    own: HardwareAddress,
    slot_bytes: usize,
    slots_per_block: usize,
    slots: usize,
    /// The slot that the kernel fills next, or has filled.
    next: usize,
}

impl Ring {
    /// Creates a ring of about `ring_bytes` bytes for payloads of up to `payload_bytes`.
    ///
    /// # Errors
    /// [`RawError::Io`] if the kernel has no memory for it.
    pub fn open(socket: &EtherSocket, payload_bytes: usize, ring_bytes: usize) -> Result<Ring, RawError> {
        let payload_bytes = payload_bytes.min(FRAME_PAYLOAD_BYTES_MAX);
        let slot_bytes = (SLOT_HEADER_BYTES + payload_bytes).next_multiple_of(SLOT_ALIGNMENT);
        let slots_per_block = BLOCK_BYTES / slot_bytes;
        let blocks = (ring_bytes.min(RING_BYTES_MAX) / BLOCK_BYTES).max(1);
        let slots = slots_per_block * blocks;
        // None of these is more than RING_BYTES_MAX.
        let request = RingRequest {
            block_bytes: BLOCK_BYTES as u32,
            blocks: blocks as u32,
            slot_bytes: slot_bytes as u32,
            slots: slots as u32,
        };
        let memory = sys::receive_ring(std::os::fd::AsFd::as_fd(socket), &request)
            .map_err(RawError::io("make a receive ring"))?;
        Ok(Ring { memory, own: socket.address(), slot_bytes, slots_per_block, slots, next: 0 })
    }

    fn place(&self) -> usize {
        self.next / self.slots_per_block * BLOCK_BYTES + self.next % self.slots_per_block * self.slot_bytes
    }

    /// Returns whether a frame has arrived.
    ///
    /// # Cost
    /// One read of shared memory.
    pub fn is_ready(&self) -> bool {
        self.memory.is_ours(self.place())
    }

    /// Calls `look` with the source and the payload of up to `max` frames for this interface. The payload may
    /// be changed in place. Returns the number of frames, those for other interfaces included.
    ///
    /// # Cost
    /// No system call, no copy.
    pub fn each(&mut self, max: usize, mut look: impl FnMut(HardwareAddress, &mut [u8])) -> usize {
        for count in 0..max {
            if !self.is_ready() {
                return count;
            }
            let place = self.place();
            let frame = self.memory.frame(place, self.slot_bytes);
            let parts = frame.and_then(|frame| frame.split_at_mut_checked(ETHERNET_HEADER_BYTES));
            if let Some((header, payload)) = parts.filter(|(header, _)| header.starts_with(&self.own.0))
                && let Some(source) = header.get(6..).and_then(<[u8]>::first_chunk)
            {
                look(HardwareAddress(*source), payload);
            }
            self.memory.give_back(place);
            self.next = (self.next + 1) % self.slots;
        }
        max
    }
}
