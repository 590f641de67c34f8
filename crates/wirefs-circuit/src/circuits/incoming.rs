//! Processing of received parts, acknowledgements and losses.

use crate::address::CircuitNumber;
use crate::circuits::circuit::Circuit;
use crate::circuits::{Circuits, Event, Slot, SlotState};
use crate::limits::CIRCUITS_MAX;
use crate::output::CircuitFault;
use crate::receive_buffer::ReceiveError;
use crate::send_buffer::DataRange;
use crate::sent_packets::SentPart;

impl Circuits {
    /// Fails if a circuit number is in no table.
    ///
    /// # Errors
    /// Its slot is out of range.
    pub(crate) fn check(number: CircuitNumber) -> Result<(), CircuitFault> {
        if number.slot() < CIRCUITS_MAX { Ok(()) } else { Err(CircuitFault::CircuitNumber) }
    }

    /// Returns whether the receive buffer accepts data at this offset.
    pub(crate) fn has_room(&mut self, number: CircuitNumber, offset: u64) -> bool {
        self.circuit(number).is_none_or(|circuit| circuit.receive_buffer.has_room(offset))
    }

    /// Processes data. If it opens a circuit, the path it came on becomes the preferred path.
    ///
    /// # Errors
    /// The peer violated the protocol.
    pub(crate) fn data(
        &mut self,
        number: CircuitNumber,
        offset: u64,
        bytes: &[u8],
        is_last: bool,
        path: u8,
    ) -> Result<(), CircuitFault> {
        let is_theirs = number.opener() != self.side;
        match self.slot(number) {
            Some(slot @ Slot { state: SlotState::Vacant, .. }) if is_theirs => {
                slot.state = SlotState::Open(Box::new(Circuit::new(number, path)));
                self.events.push_back(Event::Opened(number));
            }
            Some(Slot { state: SlotState::Open(circuit), .. }) if circuit.number != number => {
                return Err(CircuitFault::CircuitNumber);
            }
            // A late packet of a closed circuit.
            Some(Slot { state: SlotState::Open(_), .. }) => {}
            Some(Slot { state: SlotState::Vacant | SlotState::Ended, .. }) | None => return Ok(()),
        }
        let Some(circuit) = self.circuit(number) else {
            return Ok(());
        };
        let is_new_data =
            circuit.receive_buffer.insert(offset, bytes, is_last).map_err(|error| match error {
                ReceiveError::FlowControl => CircuitFault::FlowControl,
                ReceiveError::FinalSize => CircuitFault::FinalSize,
            })?;
        if is_new_data && !circuit.is_readable_reported {
            circuit.is_readable_reported = true;
            self.events.push_back(Event::Readable(number));
        }
        Ok(())
    }

    /// Processes a credit update.
    pub(crate) fn credit(&mut self, number: CircuitNumber, limit: u64) {
        if let Some(circuit) = self.circuit(number) {
            circuit.send_buffer.grant(limit);
            self.enqueue(number);
        }
    }

    /// Processes a reset.
    pub(crate) fn peer_reset(&mut self, number: CircuitNumber) {
        let is_theirs = number.opener() != self.side;
        let Some(slot) = self.slot(number) else {
            return;
        };
        let (is_open, is_vacant) = match slot.state {
            SlotState::Open(_) => (true, false),
            SlotState::Vacant => (false, true),
            SlotState::Ended => (false, false),
        };
        if is_open {
            self.events.push_back(Event::Reset(number));
            self.remove(number, SlotState::Ended);
        }
        if is_theirs {
            self.free(number);
        } else if !is_vacant {
            // The peer frees the slot after this confirmation.
            self.control_parts.push_back(SentPart::Reset(number));
        }
    }

    /// The peer freed a slot of ours.
    pub(crate) fn peer_free(&mut self, number: CircuitNumber) {
        if number.opener() != self.side {
            return;
        }
        let Some(slot) = self.slot(number) else {
            return;
        };
        match &mut slot.state {
            SlotState::Vacant => {}
            SlotState::Ended => slot.vacate(),
            SlotState::Open(circuit) if circuit.send_buffer.is_finishing() => {
                circuit.is_freed = true;
                circuit.send_buffer.acknowledge_all();
                self.close_if_done(number);
            }
            SlotState::Open(_) => {}
        }
    }

    /// Processes the acknowledgement of a part.
    pub(crate) fn arrived(&mut self, content: SentPart) {
        match content {
            SentPart::Data { number, offset, bytes, is_last } => {
                let Some(circuit) = self.circuit(number) else {
                    return;
                };
                circuit.send_buffer.acknowledge(DataRange { offset, bytes, is_last });
                if circuit.wants_room && circuit.send_buffer.has_write_room() {
                    circuit.wants_room = false;
                    self.events.push_back(Event::Writable(number));
                }
                self.close_if_done(number);
            }
            SentPart::Credit(_) | SentPart::Reset(_) | SentPart::Free(_) => {}
        }
    }

    /// Queues a lost part for retransmission if it is still relevant.
    pub(crate) fn lost(&mut self, content: SentPart) {
        match content {
            SentPart::Data { number, offset, bytes, is_last } => {
                if let Some(circuit) = self.circuit(number) {
                    circuit.send_buffer.mark_lost(DataRange { offset, bytes, is_last });
                    self.enqueue(number);
                }
            }
            SentPart::Credit(number) => {
                if let Some(circuit) = self.circuit(number).filter(|circuit| !circuit.is_credit_queued) {
                    circuit.is_credit_queued = true;
                    self.control_parts.push_back(content);
                }
            }
            SentPart::Reset(number) => {
                if self.slot(number).is_some_and(|slot| matches!(slot.state, SlotState::Ended)) {
                    self.control_parts.push_back(content);
                }
            }
            SentPart::Free(_) => self.control_parts.push_back(content),
        }
    }
}
