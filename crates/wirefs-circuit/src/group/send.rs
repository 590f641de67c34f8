//! What a group sends.

use wirefs_op::Time;

use crate::address::CardId;
use crate::config::Card;
use crate::flight::{Contents, Purpose, Report};
use crate::group::Group;
use crate::limits::{PACKET_BYTES_MIN, PATHS_MAX};
use crate::output::Departure;
use crate::path::Path;
use crate::seal::{OVERHEAD_BYTES, TAG_BYTES};
use crate::wire::header::{self, HANDSHAKE_HEADER_BYTES, Kind, SEALED_HEADER_BYTES};
use crate::wire::part::{ACK_BYTES_MIN, CLOSE, PING};
use crate::wire::writer::Writer;

/// What was written into a packet.
struct Filled {
    bytes: usize,
    purpose: Purpose,
    contents: Contents,
    /// Something was left that may go over this path.
    is_more: bool,
}

impl Group {
    /// Writes the next packet that may leave over this card now.
    pub(crate) fn poll_packet(
        &mut self,
        now: Time,
        card: CardId,
        buffer: &mut [u8],
        cards: &[Card],
    ) -> Option<Departure> {
        for index in 0..self.paths.len() {
            let is_here = |path: &Path| path.way.card == card;
            if !self.paths.get(index).and_then(Option::as_ref).is_some_and(|path| is_here(path)) {
                continue;
            }
            let filled = self.fill(now, index, buffer);
            let departure = filled.and_then(|filled| self.leave(now, index, filled, buffer, cards));
            if departure.is_some() {
                return departure;
            }
        }
        None
    }

    /// Writes content for a path; none: there is nothing for it now.
    fn fill(&mut self, now: Time, index: usize, buffer: &mut [u8]) -> Option<Filled> {
        let path = self.paths.get(index)?.as_ref()?;
        if self.lost.is_some() {
            return self.fill_close(index, buffer);
        }
        if path.is_live()
            && !path.flight.is_full()
            && let Some(bytes) = path.sizing.probe(now).filter(|bytes| *bytes <= buffer.len())
        {
            return self.fill_sizing(index, bytes, buffer);
        }
        let most = path.sizing.bytes().min(buffer.len());
        let mut writer = Writer::new(buffer.get_mut(SEALED_HEADER_BYTES..most.checked_sub(TAG_BYTES)?)?);
        self.write_acks(now, index, false, &mut writer);
        let path = self.paths.get_mut(index)?.as_mut()?;
        let is_ping = std::mem::take(&mut path.wants_ping);
        if is_ping {
            writer.mark(PING);
        }
        let mut contents = Contents::default();
        let before = writer.bytes();
        let is_more = self.write_circuits(now, index, &mut writer, &mut contents);
        let is_asking = is_ping || writer.bytes() > before;
        // Company for an acknowledgement that could wait.
        if writer.bytes() > 0 {
            self.write_acks(now, index, true, &mut writer);
        }
        let bytes = writer.bytes();
        let purpose = if is_asking { Purpose::Asking } else { Purpose::Silent };
        (bytes > 0).then_some(Filled { bytes, purpose, contents, is_more })
    }

    /// Writes what is owed on this path, if it is due or `is_any`; and what is due on paths that do not live, since what
    /// they say might not be heard.
    fn write_acks(&mut self, now: Time, index: usize, is_any: bool, writer: &mut Writer<'_>) {
        let live = self.live();
        if live != 0 && live & 1 << index == 0 {
            return;
        }
        for (other, path) in self.paths.iter_mut().enumerate() {
            let is_own = other == index;
            let is_orphan = live & 1 << other == 0 && live != 0;
            let is_due = |path: &Path| path.owes_now(now) || is_any && is_own && path.owes();
            let Some(path) = path.as_mut().filter(|path| (is_own || is_orphan) && is_due(path)) else {
                continue;
            };
            if writer.left() >= ACK_BYTES_MIN {
                let (waited, runs) = path.settle_owed(now);
                // PATHS_MAX is at most 16.
                writer.ack(other as u8, waited, runs);
            }
        }
    }

    /// Writes what circuits have to say. Returns whether they have more for this path.
    fn write_circuits(
        &mut self,
        now: Time,
        index: usize,
        writer: &mut Writer<'_>,
        contents: &mut Contents,
    ) -> bool {
        let (live, open) = (self.live(), self.open_paths());
        let Some(path) = self.paths.get(index).and_then(Option::as_ref) else {
            return false;
        };
        let is_spare = live == 0 && path.spare > 0 && !path.is_dead();
        if path.flight.is_full() || !path.is_live() && !is_spare {
            return false;
        }
        let is_open = open & 1 << index != 0 && path.rate.next() <= now;
        self.circuits.write_notices(writer, contents);
        if is_spare || is_open {
            self.circuits.write_data(index as u8, open, writer, contents);
        }
        let has_work = self.circuits.has_work(index as u8, open);
        if let Some(path) = self.paths.get_mut(index).and_then(Option::as_mut) {
            if is_open && !has_work {
                path.rate.idle(path.flight.flying_bytes());
            }
            if is_spare && !contents.is_empty() {
                path.spare -= 1;
            }
        }
        has_work
    }

    /// A packet of a larger size than was ever sent on this path.
    fn fill_sizing(&mut self, index: usize, bytes: usize, buffer: &mut [u8]) -> Option<Filled> {
        let room = buffer.get_mut(SEALED_HEADER_BYTES..bytes.checked_sub(TAG_BYTES)?)?;
        room.fill(0);
        Writer::new(room).mark(PING);
        let path = self.paths.get_mut(index)?.as_mut()?;
        path.sizing.sent();
        // A plain one behind it: if that is acknowledged and this is not, the size was the reason.
        path.wants_ping = true;
        let contents = Contents::default();
        let bytes = bytes.checked_sub(OVERHEAD_BYTES)?;
        Some(Filled { bytes, purpose: Purpose::Sizing, contents, is_more: true })
    }

    fn fill_close(&mut self, index: usize, buffer: &mut [u8]) -> Option<Filled> {
        let path = self.paths.get_mut(index)?.as_mut()?;
        if !std::mem::take(&mut path.wants_ping) {
            return None;
        }
        let mut writer = Writer::new(buffer.get_mut(SEALED_HEADER_BYTES..PACKET_BYTES_MIN)?);
        writer.mark(CLOSE);
        let bytes = writer.bytes();
        Some(Filled { bytes, purpose: Purpose::Silent, contents: Contents::default(), is_more: true })
    }

    /// Numbers and seals what was written, and keeps account of it.
    fn leave(
        &mut self,
        now: Time,
        index: usize,
        filled: Filled,
        buffer: &mut [u8],
        cards: &[Card],
    ) -> Option<Departure> {
        let path = self.paths.get_mut(index)?.as_mut()?;
        let own = cards.get(usize::from(path.way.card.0))?.address;
        let bytes = (filled.bytes + OVERHEAD_BYTES).max(PACKET_BYTES_MIN);
        let packet = buffer.get_mut(..bytes)?;
        packet.get_mut(SEALED_HEADER_BYTES + filled.bytes..)?.fill(0);
        let counter = path.flight.next();
        // PATHS_MAX is at most 16; of the counter the low half travels.
        debug_assert!(index < PATHS_MAX);
        let head = header::encode(Kind::Sealed { path: index as u8 }, self.remote);
        packet.get_mut(..HANDSHAKE_HEADER_BYTES)?.copy_from_slice(&head);
        packet
            .get_mut(HANDSHAKE_HEADER_BYTES..SEALED_HEADER_BYTES)?
            .copy_from_slice(&(counter as u32).to_le_bytes());
        if !path.keys_out.seal(counter, own, path.way.remote, packet) {
            return None;
        }
        let mut report = Report::default();
        let mark = match filled.purpose {
            Purpose::Silent => Default::default(),
            Purpose::Asking | Purpose::Sizing => {
                let is_flying = !path.flight.is_empty();
                if !is_flying {
                    path.asks(now);
                }
                path.rate.leave(now, bytes as u64, is_flying, path.rtt.shortest())
            }
        };
        path.flight.push(now, bytes as u64, filled.purpose, filled.contents, mark, &mut report);
        path.learn_size(now, &mut report);
        let destination = path.way.remote;
        self.settle(&mut report);
        Some(Departure { destination, bytes, is_more: filled.is_more })
    }
}
