//! A packet comes back.

use std::time::Duration;

use bytes::Bytes;
use wirefs_op::Time;

use super::{Echo, Known, Output, Root, Verdict, drain, send};
use crate::block::BlockId;
use crate::host::{Host, HostId, Reply};
use crate::index::{self, Entry, Index, Lane};
use crate::outbox::Item;
use crate::packet::{self, Cargo, Piece, Sequence};
use crate::phase;
use crate::seal::PacketFault;

/// What the bookkeeping says about a packet of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passage {
    /// It goes out again, with this number.
    On(Sequence),
    /// It goes out again, but for so long not yet.
    Hold(Duration),
    /// It goes to another host.
    Leave,
    /// Its block needs its contents first: somebody waits for it, or a part of it is missing, or this one is late.
    Care { is_late: bool },
    /// It was back already.
    Replayed,
    /// It is older than a packet may be.
    Stale,
    /// Its block was dropped.
    Dropped,
}

/// What a passage is decided from.
pub(super) struct Arrival {
    pub(super) now: Time,
    pub(super) host: HostId,
    pub(super) reply: Reply,
    pub(super) piece: Piece,
    pub(super) copies: u32,
}

impl Echo {
    /// Takes a packet that came from a host: the payload of its echo reply, which is changed in place, and how long it
    /// waited in the receive buffer, as far as that is known.
    ///
    /// # Cost
    /// One pass to open and one to seal; no allocation and no copy, unless somebody waits for the block, a part of it is
    /// missing, it is held back, or it is [overheard](Echo::overhear).
    ///
    /// # Guarantee
    /// A packet that the store did not send, or sent and has back already, changes nothing but a counter and the bytes in
    /// `packet`: no block, and nothing that is known of a host. The store's clock runs on to `now`, as with any call.
    pub fn receive(&mut self, now: Time, host: HostId, waited: Duration, packet: &mut [u8]) -> Verdict {
        let now = self.clock.run(now);
        let (sequence, head) = match self.sealer.open(host, packet) {
            Ok(opened) => opened,
            Err(fault) => {
                self.refuse(fault);
                return Verdict::Absorb;
            }
        };
        let reply = Reply { sequence, sent: head.sent, waited };
        match head.cargo {
            Cargo::Ballast => {
                self.receive_ballast(now, host, reply);
                Verdict::Absorb
            }
            Cargo::Piece(piece) => {
                let copies = if self.shape.is_copies() { self.shape.lanes as u32 } else { 1 };
                self.receive_piece(&Arrival { now, host, reply, piece, copies }, packet)
            }
        }
    }

    /// Looks into a packet that came from a host and is to be [received](Echo::receive) in a moment: the block in it. `copy`: its
    /// payload, which is changed. None where it is no block of its own, was back already, or no index knows it.
    ///
    /// # Cost
    /// One pass to open, and a copy of the block.
    ///
    /// # Guarantee
    /// It changes nothing, whatever the packet is.
    pub fn glance(&mut self, host: HostId, copy: &mut [u8]) -> Option<(BlockId, Bytes)> {
        let (sequence, head) = self.sealer.open(host, copy).ok()?;
        let (Cargo::Piece(piece), Known::Index(index)) = (head.cargo, &mut self.known) else { return None };
        let newest = self.hosts.get(usize::from(host.0))?.line.newest()?;
        let out = Lane::Out { host, low: index::low_half(sequence) };
        let is_out =
            index.find(piece.id)?.lane(piece.lane) == Some(out) && index::is_recent(sequence, newest);
        (is_out && self.shape.is_copies()).then(|| (piece.id, Bytes::copy_from_slice(packet::body(copy))))
    }

    fn receive_ballast(&mut self, now: Time, host: HostId, reply: Reply) {
        let Some(record) = self.host_mut(host) else {
            return;
        };
        // One that is not expected any more, or was never sent, says nothing about the host.
        if record.line.ballast_answered(reply.sequence) {
            let is_new = record.answered(now, reply);
            self.note_new(host, is_new);
        } else {
            self.counters.refused.replayed += 1;
        }
    }

    fn receive_piece(&mut self, arrival: &Arrival, packet: &mut [u8]) -> Verdict {
        let &Arrival { now, host, piece, .. } = arrival;
        let was_answering = self.hosts.get(usize::from(host.0)).is_some_and(Host::is_answering);
        let mut passage = match &mut self.known {
            Known::Index(index) => pass(index, &mut self.hosts, arrival),
            Known::Root(root) => pass_unknown(root, &mut self.hosts, arrival),
        };
        let mut is_told = false;
        if let Passage::Care { is_late } = passage {
            is_told = true;
            self.counters.late += u64::from(is_late);
            self.care(now, piece, packet::body(packet));
            passage = match &mut self.known {
                Known::Index(index) => match index.find(piece.id) {
                    Some(mut entry) => depart(&mut entry, &mut self.hosts, arrival),
                    None => Passage::Dropped,
                },
                Known::Root(root) => depart_unknown(root, &mut self.hosts, arrival),
            };
        }
        let is_answering = self.hosts.get(usize::from(host.0)).is_some_and(Host::is_answering);
        self.note_new(host, is_answering && !was_answering);
        if self.overhears && !is_told && matches!(passage, Passage::On(_) | Passage::Hold(_) | Passage::Leave)
        {
            self.tell_of(piece.id, packet::body(packet));
        }
        let refused = &mut self.counters.refused;
        match passage {
            Passage::On(sequence) => return self.resend(now, host, sequence, piece, packet),
            Passage::Hold(span) => return self.hold(arrival, span, packet),
            Passage::Leave => {
                let body = Bytes::copy_from_slice(packet::body(packet));
                self.move_away(now, host, Item { piece, body, kept: None });
                return Verdict::Absorb;
            }
            Passage::Replayed => refused.replayed += 1,
            Passage::Stale => refused.stale += 1,
            // That care is needed was dealt with, and is so once.
            Passage::Dropped | Passage::Care { .. } => refused.dropped += 1,
        }
        Verdict::Absorb
    }

    fn resend(
        &mut self,
        now: Time,
        host: HostId,
        sequence: Sequence,
        piece: Piece,
        packet: &mut [u8],
    ) -> Verdict {
        if !self.sealer.seal(host, sequence, now, Cargo::Piece(piece), packet) {
            return Verdict::Absorb;
        }
        self.counters.circulated += 1;
        Verdict::Resend(send::number(sequence))
    }

    /// Notes that a host answers, if it did not before.
    fn note_new(&mut self, host: HostId, is_new: bool) {
        if is_new {
            self.outputs.push_back(Output::Answers { host });
        }
    }

    fn refuse(&mut self, fault: PacketFault) {
        let refused = &mut self.counters.refused;
        match fault {
            PacketFault::TooShort => refused.too_short += 1,
            PacketFault::Foreign => refused.foreign += 1,
            PacketFault::Misplaced => refused.misplaced += 1,
            PacketFault::Forged => refused.forged += 1,
            PacketFault::Malformed => refused.malformed += 1,
        }
    }
}

/// Decides about a packet by the index.
fn pass(index: &mut Index, hosts: &mut [Host], arrival: &Arrival) -> Passage {
    let &Arrival { now, host, reply, piece, .. } = arrival;
    let Some(record) = hosts.get_mut(usize::from(host.0)) else {
        return Passage::Replayed;
    };
    if !record.line.newest().is_some_and(|newest| index::is_recent(reply.sequence, newest)) {
        return Passage::Replayed;
    }
    let Some(mut entry) = index.find(piece.id) else {
        return Passage::Dropped;
    };
    let low = index::low_half(reply.sequence);
    let is_late = match entry.lane(piece.lane) {
        Some(lane) if lane == (Lane::Out { host, low }) => false,
        Some(lane) if lane == (Lane::Overdue { host, low }) => true,
        Some(_) | None => return Passage::Replayed,
    };
    record.line.answered(reply.sequence);
    record.answered(now, reply);
    if is_late {
        record.came_late();
        entry.set_lane(piece.lane, Lane::Out { host, low });
    }
    let flags = entry.flags();
    let is_damaged = entry.lanes().any(|(_, lane)| matches!(lane, Lane::Overdue { .. }));
    if is_late || is_damaged || flags.is_wanted || flags.is_lost {
        return Passage::Care { is_late };
    }
    depart(&mut entry, hosts, arrival)
}

/// Lets a packet go out again, or finds that it is too close behind another copy.
fn depart(entry: &mut Entry<'_>, hosts: &mut [Host], arrival: &Arrival) -> Passage {
    let &Arrival { now, host, piece, copies, .. } = arrival;
    if drain::leaves(hosts, host) {
        entry.set_lane(piece.lane, Lane::Here { host });
        return Passage::Leave;
    }
    if copies > 1
        && let Some(span) = hold_span(entry, hosts, arrival)
    {
        entry.set_lane(piece.lane, Lane::Here { host });
        return Passage::Hold(span);
    }
    let Some(record) = hosts.get_mut(usize::from(host.0)) else {
        return Passage::Replayed;
    };
    let sequence = record.send(now, false);
    entry.set_lane(piece.lane, Lane::out(host, sequence));
    Passage::On(sequence)
}

/// How long to hold back a copy that came too close behind another.
fn hold_span(entry: &Entry<'_>, hosts: &[Host], arrival: &Arrival) -> Option<Duration> {
    let record = hosts.get(usize::from(arrival.host.0))?;
    let lap = record.lap()?;
    let mut latest: Option<Time> = None;
    for (lane, state) in entry.lanes().filter(|&(lane, _)| lane != arrival.piece.lane) {
        match state {
            Lane::Out { host, low } => {
                let other = hosts.get(usize::from(host.0))?;
                if other.lap().is_some_and(|other| phase::is_in_step(lap, other)) {
                    let sequence = index::whole(low, other.line.newest()?);
                    latest = latest.max(other.line.sent_about(sequence));
                }
            }
            // One is held back already, or new, and finds its place by itself.
            Lane::Here { .. } => return None,
            Lane::Overdue { .. } => debug_assert_ne!(lane, arrival.piece.lane),
        }
    }
    if !record.has_room_to_hold() {
        return None;
    }
    phase::hold(record.driven_lap()?, arrival.copies, arrival.now - latest?)
}

/// Decides about a packet without an index.
fn pass_unknown(root: &mut Root, hosts: &mut [Host], arrival: &Arrival) -> Passage {
    let &Arrival { now, host, reply, piece, .. } = arrival;
    let place = usize::from(host.0);
    let (Some(window), Some(record)) = (root.windows.get_mut(place), hosts.get_mut(place)) else {
        return Passage::Replayed;
    };
    if !window.take(reply.sequence) {
        return Passage::Replayed;
    }
    record.line.answered(reply.sequence);
    record.answered(now, reply);
    if root.dropped.contains(piece.id) {
        return Passage::Dropped;
    }
    if root.dropped.is_stale(reply.sent) {
        return Passage::Stale;
    }
    if let Some(heard) = &mut root.heard {
        heard.insert(piece.id);
    }
    if root.wanted.contains_key(&piece.id) {
        return Passage::Care { is_late: false };
    }
    depart_unknown(root, hosts, arrival)
}

/// Lets a packet go out again without an index.
fn depart_unknown(root: &mut Root, hosts: &mut [Host], arrival: &Arrival) -> Passage {
    if drain::leaves(hosts, arrival.host) {
        return Passage::Leave;
    }
    let place = usize::from(arrival.host.0);
    let (Some(window), Some(record)) = (root.windows.get_mut(place), hosts.get_mut(place)) else {
        return Passage::Replayed;
    };
    let sequence = record.send(arrival.now, false);
    window.send(sequence);
    Passage::On(sequence)
}
