//! Receiving a packet.

use std::time::Duration;

use bytes::Bytes;
use wirefs_op::Time;

use super::{BlockRecords, Echo, EchoOutput, ReceiveVerdict, RootOnlyRecords, drain, send};
use crate::block::EchoBlockId;
use crate::host::{Host, HostId, Reply};
use crate::index::{self, Entry, Index, LaneState};
use crate::packet::{self, PacketPayload, PacketSequence, Piece};
use crate::phase;
use crate::seal::PacketFault;
use crate::send_queue::QueuedPacket;

/// The action for a received packet with a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReplyAction {
    /// Send it again with this number.
    Resend(PacketSequence),
    /// Send it again after this time.
    Hold(Duration),
    /// Send it to another host.
    Move,
    /// Use its contents first: a fetch is pending, a packet of the block is missing, or this packet is late.
    UseContents { is_late: bool },
    /// Reject: it was received before.
    Replayed,
    /// Reject: it is older than the age limit.
    Stale,
    /// Reject: its block was dropped.
    Dropped,
}

/// A received packet with a piece.
pub(super) struct Arrival {
    pub(super) now: Time,
    pub(super) host: HostId,
    pub(super) reply: Reply,
    pub(super) piece: Piece,
    pub(super) copies: u32,
}

impl Echo {
    /// Processes the payload of an echo reply from `host`, in place. `waited`: its time in the receive
    /// buffer, as far as known.
    ///
    /// # Cost
    /// One pass to open and one to seal. No allocation and no copy, unless a fetch is pending, a packet of
    /// the block is missing, or the packet is held or [overheard](Echo::overhear).
    ///
    /// # Guarantee
    /// A packet that the store did not send, or has received before, changes nothing but a counter and the
    /// bytes in `packet`. The store's clock advances to `now`, as in each call.
    pub fn receive(
        &mut self,
        now: Time,
        host: HostId,
        waited: Duration,
        packet: &mut [u8],
    ) -> ReceiveVerdict {
        let now = self.clock.advance(now);
        let (sequence, head) = match self.sealer.open(host, packet) {
            Ok(opened) => opened,
            Err(fault) => {
                self.refuse(fault);
                return ReceiveVerdict::Absorb;
            }
        };
        let reply = Reply { sequence, sent: head.sent, waited };
        match head.payload {
            PacketPayload::Probe => {
                self.receive_probe(now, host, reply);
                ReceiveVerdict::Absorb
            }
            PacketPayload::Piece(piece) => {
                let copies = if self.shape.is_copies() { self.shape.lanes as u32 } else { 1 };
                self.receive_piece(&Arrival { now, host, reply, piece, copies }, packet)
            }
        }
    }

    /// Decodes a packet that will be [received](Echo::receive) later. `copy`: a copy of its payload, which is
    /// changed. Returns `None` if it holds no whole block, was received before, or there is no index.
    ///
    /// # Cost
    /// One pass to open, and a copy of the block.
    ///
    /// # Guarantee
    /// The store's state is unchanged, whatever the packet contains.
    pub fn peek(&mut self, host: HostId, copy: &mut [u8]) -> Option<(EchoBlockId, Bytes)> {
        let (sequence, head) = self.sealer.open(host, copy).ok()?;
        let (PacketPayload::Piece(piece), BlockRecords::Index(index)) = (head.payload, &mut self.records)
        else {
            return None;
        };
        let newest = self.hosts.get(usize::from(host.0))?.timeline.newest()?;
        let out = LaneState::InFlight { host, low: index::low_half(sequence) };
        let is_out =
            index.find(piece.id)?.lane(piece.lane) == Some(out) && index::is_recent(sequence, newest);
        (is_out && self.shape.is_copies()).then(|| (piece.id, Bytes::copy_from_slice(packet::body(copy))))
    }

    fn receive_probe(&mut self, now: Time, host: HostId, reply: Reply) {
        let Some(record) = self.host_mut(host) else {
            return;
        };
        // A duplicate or unknown probe says nothing about the host.
        if record.timeline.probe_answered(reply.sequence) {
            let is_new = record.answered(now, reply);
            self.report_if_answering(host, is_new);
        } else {
            self.counters.refused.replayed += 1;
        }
    }

    fn receive_piece(&mut self, arrival: &Arrival, packet: &mut [u8]) -> ReceiveVerdict {
        let &Arrival { now, host, piece, .. } = arrival;
        let was_answering = self.hosts.get(usize::from(host.0)).is_some_and(Host::is_answering);
        let mut action = match &mut self.records {
            BlockRecords::Index(index) => decide(index, &mut self.hosts, arrival),
            BlockRecords::RootOnly(root) => decide_root_only(root, &mut self.hosts, arrival),
        };
        let mut is_used = false;
        if let ReplyAction::UseContents { is_late } = action {
            is_used = true;
            self.counters.late += u64::from(is_late);
            self.use_contents(now, piece, packet::body(packet));
            action = match &mut self.records {
                BlockRecords::Index(index) => match index.find(piece.id) {
                    Some(mut entry) => forward(&mut entry, &mut self.hosts, arrival),
                    None => ReplyAction::Dropped,
                },
                BlockRecords::RootOnly(root) => forward_root_only(root, &mut self.hosts, arrival),
            };
        }
        let is_answering = self.hosts.get(usize::from(host.0)).is_some_and(Host::is_answering);
        self.report_if_answering(host, is_answering && !was_answering);
        if self.is_overhearing
            && !is_used
            && matches!(action, ReplyAction::Resend(_) | ReplyAction::Hold(_) | ReplyAction::Move)
        {
            self.report_passed(piece.id, packet::body(packet));
        }
        let refused = &mut self.counters.refused;
        match action {
            ReplyAction::Resend(sequence) => return self.resend(now, host, sequence, piece, packet),
            ReplyAction::Hold(span) => return self.hold(arrival, span, packet),
            ReplyAction::Move => {
                let body = Bytes::copy_from_slice(packet::body(packet));
                self.move_to_other_host(now, host, QueuedPacket { piece, body, unsent_block: None });
                return ReceiveVerdict::Absorb;
            }
            ReplyAction::Replayed => refused.replayed += 1,
            ReplyAction::Stale => refused.stale += 1,
            // The contents were used above, which happens once.
            ReplyAction::Dropped | ReplyAction::UseContents { .. } => refused.dropped += 1,
        }
        ReceiveVerdict::Absorb
    }

    fn resend(
        &mut self,
        now: Time,
        host: HostId,
        sequence: PacketSequence,
        piece: Piece,
        packet: &mut [u8],
    ) -> ReceiveVerdict {
        if !self.sealer.seal(host, sequence, now, PacketPayload::Piece(piece), packet) {
            return ReceiveVerdict::Absorb;
        }
        self.counters.circulated += 1;
        ReceiveVerdict::Resend(send::number(sequence))
    }

    /// Reports a host that began to answer.
    fn report_if_answering(&mut self, host: HostId, is_new: bool) {
        if is_new {
            self.outputs.push_back(EchoOutput::Answers { host });
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

/// Decides by the index.
fn decide(index: &mut Index, hosts: &mut [Host], arrival: &Arrival) -> ReplyAction {
    let &Arrival { now, host, reply, piece, .. } = arrival;
    let Some(record) = hosts.get_mut(usize::from(host.0)) else {
        return ReplyAction::Replayed;
    };
    if !record.timeline.newest().is_some_and(|newest| index::is_recent(reply.sequence, newest)) {
        return ReplyAction::Replayed;
    }
    let Some(mut entry) = index.find(piece.id) else {
        return ReplyAction::Dropped;
    };
    let low = index::low_half(reply.sequence);
    let is_late = match entry.lane(piece.lane) {
        Some(lane) if lane == (LaneState::InFlight { host, low }) => false,
        Some(lane) if lane == (LaneState::Overdue { host, low }) => true,
        Some(_) | None => return ReplyAction::Replayed,
    };
    record.timeline.answered(reply.sequence);
    record.answered(now, reply);
    if is_late {
        record.tolerate_more();
        entry.set_lane(piece.lane, LaneState::InFlight { host, low });
    }
    let flags = entry.flags();
    let is_damaged = entry.lanes().any(|(_, lane)| matches!(lane, LaneState::Overdue { .. }));
    if is_late || is_damaged || flags.is_wanted || flags.is_lost {
        return ReplyAction::UseContents { is_late };
    }
    forward(&mut entry, hosts, arrival)
}

/// Sends a packet again, or holds it if it is too close behind another copy.
fn forward(entry: &mut Entry<'_>, hosts: &mut [Host], arrival: &Arrival) -> ReplyAction {
    let &Arrival { now, host, piece, copies, .. } = arrival;
    if drain::must_move(hosts, host) {
        entry.set_lane(piece.lane, LaneState::Queued { host });
        return ReplyAction::Move;
    }
    if copies > 1
        && let Some(span) = hold_span(entry, hosts, arrival)
    {
        entry.set_lane(piece.lane, LaneState::Queued { host });
        return ReplyAction::Hold(span);
    }
    let Some(record) = hosts.get_mut(usize::from(host.0)) else {
        return ReplyAction::Replayed;
    };
    let sequence = record.send(now, false);
    entry.set_lane(piece.lane, LaneState::in_flight(host, sequence));
    ReplyAction::Resend(sequence)
}

/// Returns how long to hold a copy that came too close behind another.
fn hold_span(entry: &Entry<'_>, hosts: &[Host], arrival: &Arrival) -> Option<Duration> {
    let record = hosts.get(usize::from(arrival.host.0))?;
    let cycle = record.cycle()?;
    let mut latest: Option<Time> = None;
    for (lane, state) in entry.lanes().filter(|&(lane, _)| lane != arrival.piece.lane) {
        match state {
            LaneState::InFlight { host, low } => {
                let other = hosts.get(usize::from(host.0))?;
                if other.cycle().is_some_and(|other| phase::is_in_step(cycle, other)) {
                    let sequence = index::whole(low, other.timeline.newest()?);
                    latest = latest.max(other.timeline.sent_about(sequence));
                }
            }
            // A queued copy is new or held already, and finds its place by itself.
            LaneState::Queued { .. } => return None,
            LaneState::Overdue { .. } => debug_assert_ne!(lane, arrival.piece.lane),
        }
    }
    if !record.has_room_to_hold() {
        return None;
    }
    phase::hold_time(record.busy_cycle()?, arrival.copies, arrival.now - latest?)
}

/// Decides without an index.
fn decide_root_only(root: &mut RootOnlyRecords, hosts: &mut [Host], arrival: &Arrival) -> ReplyAction {
    let &Arrival { now, host, reply, piece, .. } = arrival;
    let place = usize::from(host.0);
    let (Some(window), Some(record)) = (root.windows.get_mut(place), hosts.get_mut(place)) else {
        return ReplyAction::Replayed;
    };
    if !window.take(reply.sequence) {
        return ReplyAction::Replayed;
    }
    record.timeline.answered(reply.sequence);
    record.answered(now, reply);
    if root.dropped.contains(piece.id) {
        return ReplyAction::Dropped;
    }
    if root.dropped.is_stale(reply.sent) {
        return ReplyAction::Stale;
    }
    if let Some(listed) = &mut root.listed {
        listed.insert(piece.id);
    }
    if root.wanted.contains_key(&piece.id) {
        return ReplyAction::UseContents { is_late: false };
    }
    forward_root_only(root, hosts, arrival)
}

/// Sends a packet again without an index.
fn forward_root_only(root: &mut RootOnlyRecords, hosts: &mut [Host], arrival: &Arrival) -> ReplyAction {
    if drain::must_move(hosts, arrival.host) {
        return ReplyAction::Move;
    }
    let place = usize::from(arrival.host.0);
    let (Some(window), Some(record)) = (root.windows.get_mut(place), hosts.get_mut(place)) else {
        return ReplyAction::Replayed;
    };
    let sequence = record.send(arrival.now, false);
    window.send(sequence);
    ReplyAction::Resend(sequence)
}
