//! What the peer says about circuits, and what became of what we said.

use crate::address::Number;
use crate::circuits::circuit::Circuit;
use crate::circuits::{Circuits, Event, Place, Seat};
use crate::flight::Content;
use crate::limits::CIRCUITS_MAX;
use crate::output::PeerFault;
use crate::receiving::Breach;
use crate::sending::Piece;

impl Circuits {
    /// Whether a number may exist at all.
    ///
    /// # Errors
    /// It is not in either table.
    pub(crate) fn check(number: Number) -> Result<(), PeerFault> {
        if number.slot() < CIRCUITS_MAX { Ok(()) } else { Err(PeerFault::Number) }
    }

    /// Whether there is room for a piece that begins here.
    pub(crate) fn has_room(&mut self, number: Number, offset: u64) -> bool {
        self.circuit(number).is_none_or(|circuit| circuit.receiving.has_room(offset))
    }

    /// Takes data; `path` is the one it came on, which becomes the home of what the peer opens by it.
    ///
    /// # Errors
    /// The peer does what it may not.
    pub(crate) fn data(
        &mut self,
        number: Number,
        offset: u64,
        bytes: &[u8],
        is_last: bool,
        path: u8,
    ) -> Result<(), PeerFault> {
        let is_theirs = number.opener() != self.side;
        match self.place(number) {
            Some(place @ Place { seat: Seat::Vacant, .. }) if is_theirs => {
                place.seat = Seat::Open(Box::new(Circuit::new(number, path)));
                self.events.push_back(Event::Opened(number));
            }
            Some(Place { seat: Seat::Open(circuit), .. }) if circuit.number != number => {
                return Err(PeerFault::Number);
            }
            // What is over, or was never there: late.
            Some(Place { seat: Seat::Open(_), .. }) => {}
            Some(Place { seat: Seat::Vacant | Seat::Ended, .. }) | None => return Ok(()),
        }
        let Some(circuit) = self.circuit(number) else {
            return Ok(());
        };
        let is_news = circuit.receiving.insert(offset, bytes, is_last).map_err(|breach| match breach {
            Breach::Credit => PeerFault::Credit,
            Breach::End => PeerFault::End,
        })?;
        if is_news && !circuit.is_readable_told {
            circuit.is_readable_told = true;
            self.events.push_back(Event::Readable(number));
        }
        Ok(())
    }

    /// Takes a grant.
    pub(crate) fn credit(&mut self, number: Number, limit: u64) {
        if let Some(circuit) = self.circuit(number) {
            circuit.sending.grant(limit);
            self.enqueue(number);
        }
    }

    /// The peer ends a circuit at once.
    pub(crate) fn peer_reset(&mut self, number: Number) {
        let is_theirs = number.opener() != self.side;
        let Some(place) = self.place(number) else {
            return;
        };
        let (is_open, is_vacant) = match place.seat {
            Seat::Open(_) => (true, false),
            Seat::Vacant => (false, true),
            Seat::Ended => (false, false),
        };
        if is_open {
            self.events.push_back(Event::Reset(number));
            self.remove(number, Seat::Ended);
        }
        if is_theirs {
            self.free(number);
        } else if !is_vacant {
            // It waits for our word that nothing more comes.
            self.notices.push_back(Content::Reset(number));
        }
    }

    /// The peer is done with a circuit of ours.
    pub(crate) fn peer_free(&mut self, number: Number) {
        if number.opener() != self.side {
            return;
        }
        let Some(place) = self.place(number) else {
            return;
        };
        match &mut place.seat {
            Seat::Vacant => {}
            Seat::Ended => place.vacate(),
            Seat::Open(circuit) if circuit.sending.is_finishing() => {
                circuit.is_freed = true;
                circuit.sending.complete();
                self.settle(number);
            }
            Seat::Open(_) => {}
        }
    }

    /// Notes that something arrived at the peer.
    pub(crate) fn arrived(&mut self, content: Content) {
        match content {
            Content::Data { number, offset, bytes, is_last } => {
                let Some(circuit) = self.circuit(number) else {
                    return;
                };
                circuit.sending.arrive(Piece { offset, bytes, is_last });
                if circuit.wants_room && circuit.sending.is_roomy() {
                    circuit.wants_room = false;
                    self.events.push_back(Event::Writable(number));
                }
                self.settle(number);
            }
            Content::Credit(_) | Content::Reset(_) | Content::Free(_) => {}
        }
    }

    /// Notes that something has to be sent again, if it still matters.
    pub(crate) fn lost(&mut self, content: Content) {
        match content {
            Content::Data { number, offset, bytes, is_last } => {
                if let Some(circuit) = self.circuit(number) {
                    circuit.sending.lose(Piece { offset, bytes, is_last });
                    self.enqueue(number);
                }
            }
            Content::Credit(number) => {
                if let Some(circuit) = self.circuit(number).filter(|circuit| !circuit.is_credit_queued) {
                    circuit.is_credit_queued = true;
                    self.notices.push_back(content);
                }
            }
            Content::Reset(number) => {
                if self.place(number).is_some_and(|place| matches!(place.seat, Seat::Ended)) {
                    self.notices.push_back(content);
                }
            }
            Content::Free(_) => self.notices.push_back(content),
        }
    }
}
