//! All circuits of a group: the table in which a number is a place, and who may send next.
//!
//! Each side opens circuits in a table of its own. A place is used again only when the other side freed it, under the next
//! generation, so what is late is known by its number.
//!
//! ```text
//! opener:  vacant ─ open() ─> open ─ both ends, or reset ─> ended ─ free arrives ─> vacant
//! other:   vacant ─ data ──> open ─ both ends, or its reset arrives: free is sent ─> vacant
//!                              └─ own reset ─> ended ─ the opener's reset arrives: free is sent ─> vacant
//! ```

use std::collections::VecDeque;

use bytes::Bytes;

use crate::address::{Class, Number, Side};
use crate::circuits::circuit::Circuit;
use crate::flight::{Content, Contents};
use crate::limits::{CIRCUITS_MAX, CREDIT_POOL};
use crate::output::Read;
use crate::wire::part::{CREDIT_BYTES, DATA_HEADER_BYTES, FREE, NOTICE_BYTES, RESET};
use crate::wire::writer::Writer;

mod circuit;
mod incoming;

/// Data is not cut into pieces smaller than this only to fill a packet up, in bytes.
const TAIL_BYTES_MIN: usize = 32;

/// What a user has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Opened(Number),
    Readable(Number),
    Writable(Number),
    Finished(Number),
    Reset(Number),
}

/// A place in the table.
#[derive(Debug)]
enum Seat {
    Vacant,
    Open(Box<Circuit>),
    /// The user is done with it; the peer is not.
    Ended,
}

#[derive(Debug)]
struct Place {
    generation: u16,
    seat: Seat,
}

impl Place {
    fn vacate(&mut self) {
        self.seat = Seat::Vacant;
        self.generation = self.generation.wrapping_add(1);
    }
}

fn table() -> Vec<Place> {
    std::iter::repeat_with(|| Place { generation: 0, seat: Seat::Vacant }).take(CIRCUITS_MAX).collect()
}

#[derive(Debug)]
pub(crate) struct Circuits {
    side: Side,
    mine: Vec<Place>,
    theirs: Vec<Place>,
    request: VecDeque<Number>,
    bulk: VecDeque<Number>,
    notices: VecDeque<Content>,
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
            notices: VecDeque::new(),
            pool: CREDIT_POOL,
            events: VecDeque::new(),
        }
    }

    fn place(&mut self, number: Number) -> Option<&mut Place> {
        let table = if number.opener() == self.side { &mut self.mine } else { &mut self.theirs };
        table.get_mut(number.slot()).filter(|place| place.generation == number.generation())
    }

    fn circuit(&mut self, number: Number) -> Option<&mut Circuit> {
        match &mut self.place(number)?.seat {
            Seat::Open(circuit) if circuit.number == number => Some(circuit),
            Seat::Open(_) | Seat::Vacant | Seat::Ended => None,
        }
    }

    /// Opens a circuit whose home is this path; none when all places are taken.
    pub(crate) fn open(&mut self, class: Class, home: u8) -> Option<Number> {
        let free = |place: &(usize, &mut Place)| matches!(place.1.seat, Seat::Vacant);
        let (slot, place) = self.mine.iter_mut().enumerate().find(free)?;
        let number = Number::new(self.side, class, slot, place.generation);
        place.seat = Seat::Open(Box::new(Circuit::new(number, home)));
        Some(number)
    }

    /// Takes bytes to be sent; none: there is no such circuit.
    pub(crate) fn write(&mut self, number: Number, bytes: &mut Bytes) -> Option<usize> {
        let circuit = self.circuit(number)?;
        let count = circuit.sending.write(bytes);
        circuit.wants_room = !bytes.is_empty();
        self.enqueue(number);
        Some(count)
    }

    /// Bytes that were never sent.
    pub(crate) fn unsent_bytes(&mut self, number: Number) -> Option<u64> {
        Some(self.circuit(number)?.sending.unsent_bytes())
    }

    /// Says that no more will be written.
    pub(crate) fn finish(&mut self, number: Number) -> Option<()> {
        self.circuit(number)?.sending.finish();
        self.enqueue(number);
        Some(())
    }

    /// Gives what arrived next.
    pub(crate) fn read(&mut self, number: Number) -> Read {
        let Some(circuit) = self.circuit(number) else {
            return Read::Gone;
        };
        if let Some(bytes) = circuit.receiving.read() {
            self.grant(number);
            return Read::Data(bytes);
        }
        circuit.is_readable_told = false;
        if circuit.receiving.read_end() {
            self.settle(number);
            return Read::End;
        }
        Read::Nothing
    }

    /// Grants more when the window is half used up.
    fn grant(&mut self, number: Number) {
        let pool = self.pool;
        let Some(circuit) = self.circuit(number) else {
            return;
        };
        if circuit.is_credit_queued || !circuit.receiving.is_grant_due() {
            return;
        }
        let before = circuit.receiving.extra();
        circuit.receiving.widen(circuit.credit_max(), pool);
        let taken = circuit.receiving.extra() - before;
        circuit.is_credit_queued = true;
        self.pool -= taken;
        self.notices.push_back(Content::Credit(number));
    }

    /// Ends a circuit at once, both ways.
    pub(crate) fn reset(&mut self, number: Number) -> Option<()> {
        self.circuit(number)?;
        self.remove(number, Seat::Ended);
        self.notices.push_back(Content::Reset(number));
        Some(())
    }

    /// Takes a circuit out of its place.
    fn remove(&mut self, number: Number, seat: Seat) {
        let Some(place) = self.place(number) else {
            return;
        };
        let Seat::Open(circuit) = std::mem::replace(&mut place.seat, seat) else {
            return;
        };
        self.pool += circuit.receiving.extra();
    }

    /// Ends a circuit that is over both ways.
    fn settle(&mut self, number: Number) {
        let Some(circuit) = self.circuit(number) else {
            return;
        };
        if circuit.sending.is_done() && !circuit.is_finished_told {
            circuit.is_finished_told = true;
            self.events.push_back(Event::Finished(number));
        }
        let Some(circuit) = self.circuit(number).filter(|circuit| circuit.is_over()) else {
            return;
        };
        let is_freed = circuit.is_freed;
        self.remove(number, Seat::Ended);
        if number.opener() != self.side {
            self.free(number);
        } else if is_freed && let Some(place) = self.place(number) {
            place.vacate();
        }
    }

    /// Lets the opener use a place again.
    fn free(&mut self, number: Number) {
        if let Some(place) = self.place(number) {
            place.vacate();
            self.notices.push_back(Content::Free(number));
        }
    }

    fn enqueue(&mut self, number: Number) {
        let Some(circuit) = self.circuit(number) else {
            return;
        };
        if circuit.is_queued || !circuit.sending.is_ready() {
            return;
        }
        circuit.is_queued = true;
        self.queue(number.class()).push_back(number);
    }

    fn queue(&mut self, class: Class) -> &mut VecDeque<Number> {
        match class {
            Class::Request => &mut self.request,
            Class::Bulk => &mut self.bulk,
        }
    }

    /// Whether anything waits to be sent that may go over this path; `open` has a bit for each path with room.
    pub(crate) fn has_work(&self, path: u8, open: u16) -> bool {
        let may_use = |number: &Number| {
            let table = if number.opener() == self.side { &self.mine } else { &self.theirs };
            match table.get(number.slot()).map(|place| &place.seat) {
                Some(Seat::Open(circuit)) => circuit.may_use(path, open),
                Some(Seat::Vacant | Seat::Ended) | None => false,
            }
        };
        !self.notices.is_empty() || self.bulk.iter().any(may_use) || self.request.iter().any(may_use)
    }

    /// Writes notices that must not be lost.
    pub(crate) fn write_notices(&mut self, writer: &mut Writer<'_>, contents: &mut Contents) {
        while !contents.is_full() && writer.left() >= CREDIT_BYTES.max(NOTICE_BYTES) {
            let Some(content) = self.notices.pop_front() else {
                return;
            };
            match content {
                Content::Credit(number) => {
                    let Some(circuit) = self.circuit(number) else {
                        continue;
                    };
                    circuit.is_credit_queued = false;
                    writer.credit(number, circuit.receiving.grant());
                }
                Content::Reset(number) => writer.notice(RESET, number),
                Content::Free(number) => writer.notice(FREE, number),
                Content::Data { .. } => continue,
            }
            contents.push(content);
        }
    }

    /// Writes data: first that of requests, then the rest. `open` has a bit for each path with room.
    pub(crate) fn write_data(
        &mut self,
        path: u8,
        open: u16,
        writer: &mut Writer<'_>,
        contents: &mut Contents,
    ) {
        for class in [Class::Request, Class::Bulk] {
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
        number: Number,
        path: u8,
        open: u16,
        writer: &mut Writer<'_>,
        contents: &mut Contents,
    ) {
        let Some(circuit) = self.circuit(number) else {
            return;
        };
        if circuit.may_use(path, open) {
            let room = (writer.left() - DATA_HEADER_BYTES) as u64;
            if let Some(piece) = circuit.sending.take(room.min(u64::from(u16::MAX))) {
                let (offset, bytes, is_last) = (piece.offset, piece.bytes, piece.is_last);
                let sending = &circuit.sending;
                writer.data(number, offset, bytes as usize, is_last, |room| sending.copy(offset, room));
                contents.push(Content::Data { number, offset, bytes, is_last });
            }
        }
        if circuit.sending.is_ready() {
            self.queue(number.class()).push_back(number);
        } else {
            circuit.is_queued = false;
        }
    }

    /// Bytes held for users and peers.
    pub(crate) fn held_bytes(&self) -> u64 {
        let held = |place: &Place| match &place.seat {
            Seat::Open(circuit) => circuit.sending.held_bytes() + circuit.receiving.held_bytes(),
            Seat::Vacant | Seat::Ended => 0,
        };
        self.mine.iter().chain(&self.theirs).map(held).sum()
    }

    /// What has to be told to the peer and was not sent yet.
    pub(crate) fn notices(&self) -> usize {
        self.notices.len()
    }

    /// Circuits that are open or not yet free on both sides.
    pub(crate) fn taken(&self) -> usize {
        self.mine.iter().chain(&self.theirs).filter(|place| !matches!(place.seat, Seat::Vacant)).count()
    }
}

#[cfg(test)]
mod tests;
