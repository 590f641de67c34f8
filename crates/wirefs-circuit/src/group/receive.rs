//! What arrives for a group.

use wirefs_op::Time;

use crate::address::{Side, Way};
use crate::circuits::Circuits;
use crate::config::Card;
use crate::counters::Refused;
use crate::flight::Report;
use crate::group::{Group, PathChange};
use crate::limits::{NOTICES_MAX, PATHS_MAX};
use crate::output::{Lost, PeerFault};
use crate::wire::header;
use crate::wire::part::{Ack, Part, Parts};

impl Group {
    /// Takes a sealed packet that came over this way, as path `index`.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        index: u8,
        way: Way,
        packet: &mut [u8],
        cards: &[Card],
    ) -> Result<(), Refused> {
        let own = cards.get(usize::from(way.card.0)).ok_or(Refused::Malformed)?.address;
        let low = header::counter(packet).ok_or(Refused::Malformed)?;
        if usize::from(index) >= PATHS_MAX {
            return Err(Refused::Malformed);
        }
        let mut fresh = match self.paths.get(usize::from(index)).and_then(Option::as_ref) {
            Some(path) if path.way == way => None,
            Some(_) => return Err(Refused::Forged),
            // The dialler names the paths; the first genuine packet of one makes it known here.
            None if self.side == Side::Dialled => {
                Some(self.new_path(now, index, way, cards).ok_or(Refused::Malformed)?)
            }
            None => return Err(Refused::Forged),
        };
        let place = self.place(usize::from(index)).ok_or(Refused::Malformed)?;
        let path = fresh.as_mut().or(place.as_mut()).ok_or(Refused::Malformed)?;
        let expected = path.arrived.largest().map_or(0, |largest| largest + 1);
        let counter = header::whole_counter(expected, low);
        if !path.arrived.is_new(counter) {
            return Err(Refused::Replayed);
        }
        let content = path.keys_in.open(counter, way.remote, own, packet).ok_or(Refused::Forged)?;
        if fresh.is_some() {
            *place = fresh;
        }
        self.heard = now;
        self.finish = None;
        if self.lost.is_some() {
            // It does not know yet.
            self.hear_closing(now, content);
            return Ok(());
        }
        match self.take(now, index, counter, content) {
            Ok(result) => result,
            Err(fault) => {
                self.close(now, Lost::Fault(fault));
                Ok(())
            }
        }
    }

    /// A group that is over hears that the peer knows, or that it does not.
    fn hear_closing(&mut self, now: Time, content: &[u8]) {
        let knows = Parts::new(content).any(|part| part == Ok(Part::Close));
        match &mut self.closing {
            Some(closing) if knows => closing.until = now,
            Some(_) | None => {}
        }
    }

    /// Takes the content of a genuine packet: all of it, or nothing.
    fn take(
        &mut self,
        now: Time,
        index: u8,
        counter: u64,
        content: &[u8],
    ) -> Result<Result<(), Refused>, PeerFault> {
        let (mut is_asking, mut is_pressing) = (false, false);
        for part in Parts::new(content) {
            match part.map_err(|_| PeerFault::Malformed)? {
                Part::Data { number, offset, is_last, .. } => {
                    Circuits::check(number)?;
                    is_asking = true;
                    is_pressing |= is_last;
                    if !self.circuits.has_room(number, offset) {
                        return Ok(Err(Refused::NoRoom));
                    }
                }
                Part::Ping => (is_asking, is_pressing) = (true, true),
                Part::Credit { number, .. } | Part::Reset(number) | Part::Free(number) => {
                    Circuits::check(number)?;
                    is_asking = true;
                }
                Part::Ack(_) | Part::Close => {}
            }
        }
        if let Some(path) = self.paths.get_mut(usize::from(index)).and_then(Option::as_mut) {
            path.note(now, counter, is_asking);
            if is_pressing {
                path.hurry(now);
            }
        }
        for part in Parts::new(content).flatten() {
            match part {
                Part::Ping => {}
                Part::Ack(ack) => self.take_ack(now, &ack)?,
                Part::Data { number, offset, bytes, is_last } => {
                    self.circuits.data(number, offset, bytes, is_last, index)?;
                }
                Part::Credit { number, limit } => self.circuits.credit(number, limit),
                Part::Reset(number) => self.circuits.peer_reset(number),
                Part::Free(number) => self.circuits.peer_free(number),
                Part::Close => self.close(now, Lost::PeerClosed),
            }
        }
        if self.circuits.notices() > NOTICES_MAX {
            return Err(PeerFault::Flood);
        }
        Ok(Ok(()))
    }

    fn take_ack(&mut self, now: Time, ack: &Ack<'_>) -> Result<(), PeerFault> {
        let place = self.paths.get_mut(usize::from(ack.path)).and_then(Option::as_mut);
        let path = place.ok_or(PeerFault::Acknowledged)?;
        let mut report = std::mem::take(&mut self.report);
        let revives = path.acknowledge(now, ack, &mut report).map_err(|_| PeerFault::Acknowledged)?;
        if revives {
            self.changes.push(PathChange { way: path.way, is_up: true });
        }
        self.settle(&mut report);
        self.report = Report { arrived: report.arrived, lost: report.lost, ..Report::default() };
        Ok(())
    }
}
