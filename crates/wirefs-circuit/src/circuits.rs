//! The circuits of a group: the tables of both sides, and the send queues.
//!
//! Each side opens circuits in a table of its own. A slot is reused under the next generation, after the
//! other side has freed it. A late packet for an earlier use of the slot is thus recognized by its number.
//!
//! ```text
//! opener:  vacant ─ open() ─> open ─ both directions end, or reset ─> ended ─ free arrives ─> vacant
//! peer:    vacant ─ data ──> open ─ both directions end, or reset arrives: free is sent ─> vacant
//!                             └─ own reset ─> ended ─ the opener's reset arrives: free is sent ─> vacant
//! ```

use std::collections::VecDeque;

use bytes::Bytes;

use crate::address::{CircuitClass, CircuitNumber, Side};
use crate::circuits::circuit::Circuit;
use crate::limits::{CIRCUITS_MAX, CREDIT_POOL};
use crate::output::Read;
use crate::sent_packets::{SentPart, SentParts};
use crate::wire::part::{CONTROL_BYTES, CREDIT_BYTES, DATA_HEADER_BYTES, FREE, RESET};
use crate::wire::writer::Writer;

mod circuit;
mod incoming;

/// The minimum data to add to a nearly full packet, in bytes.
const TAIL_BYTES_MIN: usize = 32;

/// An event for the user of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Opened(CircuitNumber),
    Readable(CircuitNumber),
    Writable(CircuitNumber),
    Finished(CircuitNumber),
    Reset(CircuitNumber),
}

/// The state of a slot.
#[derive(Debug)]
enum SlotState {
    Vacant,
    Open(Box<Circuit>),
    /// Closed by the user, but not by the peer.
    Ended,
}

/// A slot in the table of one side.
#[derive(Debug)]
struct Slot {
    generation: u16,
    state: SlotState,
}

impl Slot {
    fn vacate(&mut self) {
        self.state = SlotState::Vacant;
        self.generation = self.generation.wrapping_add(1);
    }
}

fn table() -> Vec<Slot> {
    std::iter::repeat_with(|| Slot { generation: 0, state: SlotState::Vacant }).take(CIRCUITS_MAX).collect()
}

/// The circuits of a group.
#[derive(Debug)]
pub(crate) struct Circuits {
    side: Side,
    mine: Vec<Slot>,
    theirs: Vec<Slot>,
    request: VecDeque<CircuitNumber>,
    bulk: VecDeque<CircuitNumber>,
    control_parts: VecDeque<SentPart>,
    pool: u64,
    pub(crate) events: VecDeque<Event>,
}

impl Circuits {
    pub(crate) fn new(side: Side) -> Circuits {
        Circuits {
            side,
            mine: table(),
            theirs: table(),
            request: VecDeque::new(),
            bulk: VecDeque::new(),
            control_parts: VecDeque::new(),
            pool: CREDIT_POOL,
            events: VecDeque::new(),
        }
    }

    fn slot(&mut self, number: CircuitNumber) -> Option<&mut Slot> {
        let table = if number.opener() == self.side { &mut self.mine } else { &mut self.theirs };
        table.get_mut(number.slot()).filter(|slot| slot.generation == number.generation())
    }

    fn circuit(&mut self, number: CircuitNumber) -> Option<&mut Circuit> {
        match &mut self.slot(number)?.state {
            SlotState::Open(circuit) if circuit.number == number => Some(circuit),
            SlotState::Open(_) | SlotState::Vacant | SlotState::Ended => None,
        }
    }

    /// Opens a circuit with this preferred path; `None` if the table is full.
    pub(crate) fn open(&mut self, class: CircuitClass, preferred_path: u8) -> Option<CircuitNumber> {
        let free = |slot: &(usize, &mut Slot)| matches!(slot.1.state, SlotState::Vacant);
        let (index, slot) = self.mine.iter_mut().enumerate().find(free)?;
        let number = CircuitNumber::new(self.side, class, index, slot.generation);
        slot.state = SlotState::Open(Box::new(Circuit::new(number, preferred_path)));
        Some(number)
    }

    /// Buffers bytes to send; `None` if there is no such circuit.
    pub(crate) fn write(&mut self, number: CircuitNumber, bytes: &mut Bytes) -> Option<usize> {
        let circuit = self.circuit(number)?;
        let count = circuit.send_buffer.write(bytes);
        circuit.wants_room = !bytes.is_empty();
        self.enqueue(number);
        Some(count)
    }

    /// Returns the number of bytes that were never sent.
    pub(crate) fn unsent_bytes(&mut self, number: CircuitNumber) -> Option<u64> {
        Some(self.circuit(number)?.send_buffer.unsent_bytes())
    }

    /// Ends the send direction.
    pub(crate) fn finish(&mut self, number: CircuitNumber) -> Option<()> {
        self.circuit(number)?.send_buffer.finish();
        self.enqueue(number);
        Some(())
    }

    /// Returns the next received data.
    pub(crate) fn read(&mut self, number: CircuitNumber) -> Read {
        let Some(circuit) = self.circuit(number) else {
            return Read::Gone;
        };
        if let Some(bytes) = circuit.receive_buffer.read() {
            self.grant(number);
            return Read::Data(bytes);
        }
        circuit.is_readable_reported = false;
        if circuit.receive_buffer.read_end() {
            self.close_if_done(number);
            return Read::End;
        }
        Read::Nothing
    }

    /// Grants more credit once half of the window is used.
    fn grant(&mut self, number: CircuitNumber) {
        let pool = self.pool;
        let Some(circuit) = self.circuit(number) else {
            return;
        };
        if circuit.is_credit_queued || !circuit.receive_buffer.is_grant_due() {
            return;
        }
        let before = circuit.receive_buffer.window_growth();
        circuit.receive_buffer.grow_window(circuit.credit_max(), pool);
        let taken = circuit.receive_buffer.window_growth() - before;
        circuit.is_credit_queued = true;
        self.pool -= taken;
        self.control_parts.push_back(SentPart::Credit(number));
    }

    /// Resets a circuit: aborts both directions.
    pub(crate) fn reset(&mut self, number: CircuitNumber) -> Option<()> {
        self.circuit(number)?;
        self.remove(number, SlotState::Ended);
        self.control_parts.push_back(SentPart::Reset(number));
        Some(())
    }

    /// Removes a circuit from its slot.
    fn remove(&mut self, number: CircuitNumber, state: SlotState) {
        let Some(slot) = self.slot(number) else {
            return;
        };
        let SlotState::Open(circuit) = std::mem::replace(&mut slot.state, state) else {
            return;
        };
        self.pool += circuit.receive_buffer.window_growth();
    }

    /// Closes a circuit whose directions have both ended.
    fn close_if_done(&mut self, number: CircuitNumber) {
        let Some(circuit) = self.circuit(number) else {
            return;
        };
        if circuit.send_buffer.is_done() && !circuit.is_finished_reported {
            circuit.is_finished_reported = true;
            self.events.push_back(Event::Finished(number));
        }
        let Some(circuit) = self.circuit(number).filter(|circuit| circuit.is_over()) else {
            return;
        };
        let is_freed = circuit.is_freed;
        self.remove(number, SlotState::Ended);
        if number.opener() != self.side {
            self.free(number);
        } else if is_freed && let Some(slot) = self.slot(number) {
            slot.vacate();
        }
    }

    /// Frees a slot for reuse by the opener.
    fn free(&mut self, number: CircuitNumber) {
        if let Some(slot) = self.slot(number) {
            slot.vacate();
            self.control_parts.push_back(SentPart::Free(number));
        }
    }

    fn enqueue(&mut self, number: CircuitNumber) {
        let Some(circuit) = self.circuit(number) else {
            return;
        };
        if circuit.is_queued || !circuit.send_buffer.is_ready() {
            return;
        }
        circuit.is_queued = true;
        self.queue(number.class()).push_back(number);
    }

    fn queue(&mut self, class: CircuitClass) -> &mut VecDeque<CircuitNumber> {
        match class {
            CircuitClass::Request => &mut self.request,
            CircuitClass::Bulk => &mut self.bulk,
        }
    }

    /// Returns whether data or control parts can be sent on this path; `open` has a bit for each path with
    /// free window.
    pub(crate) fn has_work(&self, path: u8, open: u16) -> bool {
        let may_use = |number: &CircuitNumber| {
            let table = if number.opener() == self.side { &self.mine } else { &self.theirs };
            match table.get(number.slot()).map(|slot| &slot.state) {
                Some(SlotState::Open(circuit)) => circuit.may_use(path, open),
                Some(SlotState::Vacant | SlotState::Ended) | None => false,
            }
        };
        !self.control_parts.is_empty() || self.bulk.iter().any(may_use) || self.request.iter().any(may_use)
    }

    /// Writes queued control parts.
    pub(crate) fn write_control_parts(&mut self, writer: &mut Writer<'_>, contents: &mut SentParts) {
        while !contents.is_full() && writer.left() >= CREDIT_BYTES.max(CONTROL_BYTES) {
            let Some(content) = self.control_parts.pop_front() else {
                return;
            };
            match content {
                SentPart::Credit(number) => {
                    let Some(circuit) = self.circuit(number) else {
                        continue;
                    };
                    circuit.is_credit_queued = false;
                    writer.credit(number, circuit.receive_buffer.grant());
                }
                SentPart::Reset(number) => writer.control(RESET, number),
                SentPart::Free(number) => writer.control(FREE, number),
                SentPart::Data { .. } => continue,
            }
            contents.push(content);
        }
    }

    /// Writes data, requests first. `open` has a bit for each path with free window.
    pub(crate) fn write_data(
        &mut self,
        path: u8,
        open: u16,
        writer: &mut Writer<'_>,
        contents: &mut SentParts,
    ) {
        for class in [CircuitClass::Request, CircuitClass::Bulk] {
            for _ in 0..self.queue(class).len() {
                if contents.is_full() || writer.left() < DATA_HEADER_BYTES + TAIL_BYTES_MIN {
                    return;
                }
                let Some(number) = self.queue(class).pop_front() else {
                    break;
                };
                self.write_piece(number, path, open, writer, contents);
            }
        }
    }

    fn write_piece(
        &mut self,
        number: CircuitNumber,
        path: u8,
        open: u16,
        writer: &mut Writer<'_>,
        contents: &mut SentParts,
    ) {
        let Some(circuit) = self.circuit(number) else {
            return;
        };
        if circuit.may_use(path, open) {
            let room = (writer.left() - DATA_HEADER_BYTES) as u64;
            if let Some(piece) = circuit.send_buffer.take(room.min(u64::from(u16::MAX))) {
                let (offset, bytes, is_last) = (piece.offset, piece.bytes, piece.is_last);
                let sending = &circuit.send_buffer;
                writer.data(number, offset, bytes as usize, is_last, |room| sending.copy(offset, room));
                contents.push(SentPart::Data { number, offset, bytes, is_last });
            }
        }
        if circuit.send_buffer.is_ready() {
            self.queue(number.class()).push_back(number);
        } else {
            circuit.is_queued = false;
        }
    }

    /// The memory of send and receive buffers, in bytes.
    pub(crate) fn held_bytes(&self) -> u64 {
        let held = |slot: &Slot| match &slot.state {
            SlotState::Open(circuit) => {
                circuit.send_buffer.held_bytes() + circuit.receive_buffer.held_bytes()
            }
            SlotState::Vacant | SlotState::Ended => 0,
        };
        self.mine.iter().chain(&self.theirs).map(held).sum()
    }

    /// The number of queued control parts.
    pub(crate) fn control_parts(&self) -> usize {
        self.control_parts.len()
    }

    /// The number of circuits that are open, or not yet freed by both sides.
    pub(crate) fn count(&self) -> usize {
        self.mine.iter().chain(&self.theirs).filter(|slot| !matches!(slot.state, SlotState::Vacant)).count()
    }
}

#[cfg(test)]
mod tests;
