//! The send side of a group.

use wirefs_op::Time;

use crate::address::CardId;
use crate::config::Card;
use crate::group::Group;
use crate::limits::{PACKET_BYTES_MIN, PATHS_MAX};
use crate::output::OutgoingPacket;
use crate::path::Path;
use crate::seal::{OVERHEAD_BYTES, TAG_BYTES};
use crate::sent_packets::{DeliveryReport, Purpose, SentParts};
use crate::wire::header::{self, HANDSHAKE_HEADER_BYTES, Kind, SEALED_HEADER_BYTES};
use crate::wire::part::{ACK_BYTES_MIN, CLOSE, PING};
use crate::wire::writer::Writer;

/// The parts written into a packet.
struct Filled {
    bytes: usize,
    purpose: Purpose,
    contents: SentParts,
    /// More can be sent on this path.
    is_more: bool,
}

impl Group {
    /// Writes the next packet that can be sent on this card.
    pub(crate) fn poll_packet(
        &mut self,
        now: Time,
        card: CardId,
        buffer: &mut [u8],
        cards: &[Card],
    ) -> Option<OutgoingPacket> {
        for index in 0..self.paths.len() {
            let is_here = |path: &Path| path.network_path.card == card;
            if !self.paths.get(index).and_then(Option::as_ref).is_some_and(|path| is_here(path)) {
                continue;
            }
            let filled = self.fill(now, index, buffer);
            let outgoing = filled.and_then(|filled| self.seal_packet(now, index, filled, buffer, cards));
            if outgoing.is_some() {
                return outgoing;
            }
        }
        None
    }

    /// Writes parts for a path; `None` if there is nothing to send.
    fn fill(&mut self, now: Time, index: usize, buffer: &mut [u8]) -> Option<Filled> {
        let path = self.paths.get(index)?.as_ref()?;
        if self.close_reason.is_some() {
            return self.fill_close(index, buffer);
        }
        if path.is_live()
            && !path.sent_packets.is_full()
            && let Some(bytes) = path.mtu.probe(now).filter(|bytes| *bytes <= buffer.len())
        {
            return self.fill_mtu_probe(index, bytes, buffer);
        }
        let most = path.mtu.bytes().min(buffer.len());
        let mut writer = Writer::new(buffer.get_mut(SEALED_HEADER_BYTES..most.checked_sub(TAG_BYTES)?)?);
        self.write_acks(now, index, false, &mut writer);
        let path = self.paths.get_mut(index)?.as_mut()?;
        let is_ping = std::mem::take(&mut path.wants_ping);
        if is_ping {
            writer.mark(PING);
        }
        let mut contents = SentParts::default();
        let before = writer.bytes();
        let is_more = self.write_circuits(now, index, &mut writer, &mut contents);
        let is_ack_eliciting = is_ping || writer.bytes() > before;
        // Adds an acknowledgement that is not due yet.
        if writer.bytes() > 0 {
            self.write_acks(now, index, true, &mut writer);
        }
        let bytes = writer.bytes();
        let purpose = if is_ack_eliciting { Purpose::AckEliciting } else { Purpose::AckOnly };
        (bytes > 0).then_some(Filled { bytes, purpose, contents, is_more })
    }

    /// Writes the pending acknowledgement of this path if it is due or `is_any`. Also writes due ones of
    /// paths that are not live, since their packets may not arrive.
    fn write_acks(&mut self, now: Time, index: usize, is_any: bool, writer: &mut Writer<'_>) {
        let live = self.live();
        if live != 0 && live & 1 << index == 0 {
            return;
        }
        for (other, path) in self.paths.iter_mut().enumerate() {
            let is_own = other == index;
            let is_orphan = live & 1 << other == 0 && live != 0;
            let is_due = |path: &Path| path.is_ack_due(now) || is_any && is_own && path.has_pending_ack();
            let Some(path) = path.as_mut().filter(|path| (is_own || is_orphan) && is_due(path)) else {
                continue;
            };
            if writer.left() >= ACK_BYTES_MIN {
                let (ack_delay, ranges) = path.take_pending_ack(now);
                // PATHS_MAX is at most 16.
                writer.ack(other as u8, ack_delay, ranges);
            }
        }
    }

    /// Writes control parts and data. Returns whether more can be sent on this path.
    fn write_circuits(
        &mut self,
        now: Time,
        index: usize,
        writer: &mut Writer<'_>,
        contents: &mut SentParts,
    ) -> bool {
        let (live, open) = (self.live(), self.open_paths());
        let Some(path) = self.paths.get(index).and_then(Option::as_ref) else {
            return false;
        };
        let may_probe = live == 0 && path.probe_packets > 0 && !path.is_dead();
        if path.sent_packets.is_full() || !path.is_live() && !may_probe {
            return false;
        }
        let is_open = open & 1 << index != 0 && path.congestion.next_send_at() <= now;
        self.circuits.write_control_parts(writer, contents);
        if may_probe || is_open {
            self.circuits.write_data(index as u8, open, writer, contents);
        }
        let has_work = self.circuits.has_work(index as u8, open);
        if let Some(path) = self.paths.get_mut(index).and_then(Option::as_mut) {
            if is_open && !has_work {
                path.congestion.on_app_limited(path.sent_packets.bytes_in_flight());
            }
            if may_probe && !contents.is_empty() {
                path.probe_packets -= 1;
            }
        }
        has_work
    }

    /// Writes an MTU probe: a packet larger than any sent on this path.
    fn fill_mtu_probe(&mut self, index: usize, bytes: usize, buffer: &mut [u8]) -> Option<Filled> {
        let room = buffer.get_mut(SEALED_HEADER_BYTES..bytes.checked_sub(TAG_BYTES)?)?;
        room.fill(0);
        Writer::new(room).mark(PING);
        let path = self.paths.get_mut(index)?.as_mut()?;
        path.mtu.sent();
        // A base-size packet follows. If only that is acknowledged, the probe was too large.
        path.wants_ping = true;
        let contents = SentParts::default();
        let bytes = bytes.checked_sub(OVERHEAD_BYTES)?;
        Some(Filled { bytes, purpose: Purpose::MtuProbe, contents, is_more: true })
    }

    fn fill_close(&mut self, index: usize, buffer: &mut [u8]) -> Option<Filled> {
        let path = self.paths.get_mut(index)?.as_mut()?;
        if !std::mem::take(&mut path.wants_ping) {
            return None;
        }
        let mut writer = Writer::new(buffer.get_mut(SEALED_HEADER_BYTES..PACKET_BYTES_MIN)?);
        writer.mark(CLOSE);
        let bytes = writer.bytes();
        Some(Filled { bytes, purpose: Purpose::AckOnly, contents: SentParts::default(), is_more: true })
    }

    /// Assigns the packet number, seals the packet and records it as sent.
    fn seal_packet(
        &mut self,
        now: Time,
        index: usize,
        filled: Filled,
        buffer: &mut [u8],
        cards: &[Card],
    ) -> Option<OutgoingPacket> {
        let path = self.paths.get_mut(index)?.as_mut()?;
        let own = cards.get(usize::from(path.network_path.card.0))?.address;
        let bytes = (filled.bytes + OVERHEAD_BYTES).max(PACKET_BYTES_MIN);
        let packet = buffer.get_mut(..bytes)?;
        packet.get_mut(SEALED_HEADER_BYTES + filled.bytes..)?.fill(0);
        let packet_number = path.sent_packets.next();
        // PATHS_MAX is at most 16; the wire carries the low half of the packet number.
        debug_assert!(index < PATHS_MAX);
        let head = header::encode(Kind::Sealed { path: index as u8 }, self.remote);
        packet.get_mut(..HANDSHAKE_HEADER_BYTES)?.copy_from_slice(&head);
        packet
            .get_mut(HANDSHAKE_HEADER_BYTES..SEALED_HEADER_BYTES)?
            .copy_from_slice(&(packet_number as u32).to_le_bytes());
        if !path.send_keys.seal(packet_number, own, path.network_path.remote, packet) {
            return None;
        }
        let mut report = DeliveryReport::default();
        let snapshot = match filled.purpose {
            Purpose::AckOnly => Default::default(),
            Purpose::AckEliciting | Purpose::MtuProbe => {
                let has_in_flight = !path.sent_packets.is_empty();
                if !has_in_flight {
                    path.restart_timer(now);
                }
                path.congestion.on_packet_sent(now, bytes as u64, has_in_flight, path.rtt.min_rtt())
            }
        };
        path.sent_packets.push(now, bytes as u64, filled.purpose, filled.contents, snapshot, &mut report);
        path.update_mtu(now, &mut report);
        let destination = path.network_path.remote;
        self.apply_report(&mut report);
        Some(OutgoingPacket { destination, bytes, is_more: filled.is_more })
    }
}
