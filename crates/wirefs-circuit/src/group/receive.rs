//! The receive side of a group.

use wirefs_op::Time;

use crate::address::{NetworkPath, Side};
use crate::circuits::Circuits;
use crate::config::Card;
use crate::counters::DropReason;
use crate::group::{Group, PathChange};
use crate::limits::{CONTROL_PARTS_MAX, PATHS_MAX};
use crate::output::{CircuitFault, CloseReason};
use crate::sent_packets::DeliveryReport;
use crate::wire::header;
use crate::wire::part::{Ack, Part, Parts};

impl Group {
    /// Processes a sealed packet from this network path with path number `index`.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        index: u8,
        network_path: NetworkPath,
        packet: &mut [u8],
        cards: &[Card],
    ) -> Result<(), DropReason> {
        let own = cards.get(usize::from(network_path.card.0)).ok_or(DropReason::Malformed)?.address;
        let low = header::packet_number(packet).ok_or(DropReason::Malformed)?;
        if usize::from(index) >= PATHS_MAX {
            return Err(DropReason::Malformed);
        }
        let mut fresh = match self.paths.get(usize::from(index)).and_then(Option::as_ref) {
            Some(path) if path.network_path == network_path => None,
            Some(_) => return Err(DropReason::Forged),
            // The initiator assigns path numbers; the first authentic packet of a path makes it known to the
            // responder.
            None if self.side == Side::Responder => {
                Some(self.new_path(now, index, network_path, cards).ok_or(DropReason::Malformed)?)
            }
            None => return Err(DropReason::Forged),
        };
        let entry = self.path_entry(usize::from(index)).ok_or(DropReason::Malformed)?;
        let path = fresh.as_mut().or(entry.as_mut()).ok_or(DropReason::Malformed)?;
        let expected = path.replay_window.largest().map_or(0, |largest| largest + 1);
        let packet_number = header::decode_packet_number(expected, low);
        if !path.replay_window.is_new(packet_number) {
            return Err(DropReason::Replayed);
        }
        let content = path
            .receive_keys
            .open(packet_number, network_path.remote, own, packet)
            .ok_or(DropReason::Forged)?;
        if fresh.is_some() {
            *entry = fresh;
        }
        self.last_received = now;
        self.finish = None;
        if self.close_reason.is_some() {
            // The peer does not know yet that the group is closed.
            self.receive_while_closing(now, content);
            return Ok(());
        }
        match self.take(now, index, packet_number, content) {
            Ok(result) => result,
            Err(fault) => {
                self.close(now, CloseReason::Fault(fault));
                Ok(())
            }
        }
    }

    /// Ends the closing period once the peer has closed, too.
    fn receive_while_closing(&mut self, now: Time, content: &[u8]) {
        let knows = Parts::new(content).any(|part| part == Ok(Part::Close));
        match &mut self.closing {
            Some(closing) if knows => closing.until = now,
            Some(_) | None => {}
        }
    }

    /// Processes the parts of an authentic packet, all or none.
    fn take(
        &mut self,
        now: Time,
        index: u8,
        packet_number: u64,
        content: &[u8],
    ) -> Result<Result<(), DropReason>, CircuitFault> {
        let (mut is_ack_eliciting, mut is_urgent) = (false, false);
        for part in Parts::new(content) {
            match part.map_err(|_| CircuitFault::Malformed)? {
                Part::Data { number, offset, is_last, .. } => {
                    Circuits::check(number)?;
                    is_ack_eliciting = true;
                    is_urgent |= is_last;
                    if !self.circuits.has_room(number, offset) {
                        return Ok(Err(DropReason::NoRoom));
                    }
                }
                Part::Ping => (is_ack_eliciting, is_urgent) = (true, true),
                Part::Credit { number, .. } | Part::Reset(number) | Part::Free(number) => {
                    Circuits::check(number)?;
                    is_ack_eliciting = true;
                }
                Part::Ack(_) | Part::Close => {}
            }
        }
        if let Some(path) = self.paths.get_mut(usize::from(index)).and_then(Option::as_mut) {
            path.record_received(now, packet_number, is_ack_eliciting);
            if is_urgent {
                path.acknowledge_now(now);
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
                Part::Close => self.close(now, CloseReason::Peer),
            }
        }
        if self.circuits.control_parts() > CONTROL_PARTS_MAX {
            return Err(CircuitFault::Flood);
        }
        Ok(Ok(()))
    }

    fn take_ack(&mut self, now: Time, ack: &Ack<'_>) -> Result<(), CircuitFault> {
        let entry = self.paths.get_mut(usize::from(ack.path)).and_then(Option::as_mut);
        let path = entry.ok_or(CircuitFault::UnsentPacketAcked)?;
        let mut report = std::mem::take(&mut self.report);
        let revives = path.acknowledge(now, ack, &mut report).map_err(|_| CircuitFault::UnsentPacketAcked)?;
        if revives {
            self.changes.push(PathChange { network_path: path.network_path, is_up: true });
        }
        self.apply_report(&mut report);
        self.report =
            DeliveryReport { arrived: report.arrived, lost: report.lost, ..DeliveryReport::default() };
        Ok(())
    }
}
