//! The state of one circuit.

use crate::address::{CircuitClass, CircuitNumber};
use crate::limits::{BULK_CREDIT_MAX, REQUEST_CREDIT_MAX};
use crate::receive_buffer::ReceiveBuffer;
use crate::send_buffer::SendBuffer;

/// One circuit.
#[derive(Debug)]
pub(crate) struct Circuit {
    pub(super) number: CircuitNumber,
    /// The path of a request circuit while that is open.
    preferred_path: u8,
    pub(super) send_buffer: SendBuffer,
    pub(super) receive_buffer: ReceiveBuffer,
    pub(super) is_queued: bool,
    pub(super) is_credit_queued: bool,
    pub(super) is_readable_reported: bool,
    pub(super) is_finished_reported: bool,
    /// The last write was partial: the user waits for buffer space.
    pub(super) wants_room: bool,
    /// The peer freed the slot before the user closed the circuit.
    pub(super) is_freed: bool,
}

impl Circuit {
    pub(super) fn new(number: CircuitNumber, preferred_path: u8) -> Circuit {
        Circuit {
            number,
            preferred_path,
            send_buffer: SendBuffer::new(),
            receive_buffer: ReceiveBuffer::new(),
            is_queued: false,
            is_credit_queued: false,
            is_readable_reported: false,
            is_finished_reported: false,
            wants_room: false,
            is_freed: false,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.send_buffer.is_done() && self.receive_buffer.is_done()
    }

    pub(super) fn credit_max(&self) -> u64 {
        match self.number.class() {
            CircuitClass::Request => REQUEST_CREDIT_MAX,
            CircuitClass::Bulk => BULK_CREDIT_MAX,
        }
    }

    /// Returns whether data may use this path. Bulk uses all paths; requests use their preferred path unless
    /// it has no window.
    pub(super) fn may_use(&self, path: u8, open: u16) -> bool {
        self.number.class() == CircuitClass::Bulk
            || self.preferred_path == path
            || open & 1 << self.preferred_path == 0
    }
}
