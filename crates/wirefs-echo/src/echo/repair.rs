//! Use of a packet's contents: pending fetches and repair.

use std::time::Duration;

use bytes::Bytes;
use wirefs_op::Time;

use super::receive::Arrival;
use super::{BlockRecords, Distance, Echo, EchoOutput, ReceiveVerdict};
use crate::block::EchoBlockId;
use crate::host::HostId;
use crate::index::{Flags, LaneState};
use crate::limits::{HOSTS_MAX, LANES_MAX, SEND_QUEUE_BYTES_MAX};
use crate::packet::{self, LaneId, Piece};
use crate::pieces::BlockEncoder;
use crate::send_queue::{self, QueuedPacket};

/// The packets of a block to rebuild, and the hosts of all of them.
struct Damage {
    overdue: [Option<(LaneId, HostId)>; LANES_MAX],
    taken: [u64; HOSTS_MAX],
}

impl Echo {
    /// Restores a block from this piece and earlier ones if needed, for a pending fetch and to rebuild its
    /// overdue packets.
    pub(super) fn use_contents(&mut self, now: Time, piece: Piece, body: &[u8]) {
        self.report_if_recovered(piece.id);
        if !self.needs_contents(piece.id) {
            self.collector.discard(piece.id);
            return;
        }
        if let Some(block) = self.collector.add(piece, body) {
            self.finish_fetch(piece.id, Some(block.clone()));
            self.rebuild(now, piece.id, &block);
        }
    }

    pub(super) fn needs_contents(&mut self, id: EchoBlockId) -> bool {
        match &mut self.records {
            BlockRecords::Index(index) => index.find(id).is_some_and(|entry| {
                // The rest of a lost block is useless until more of it arrives.
                let is_damaged = entry.lanes().any(|(_, lane)| matches!(lane, LaneState::Overdue { .. }));
                entry.flags().is_wanted || (is_damaged && !entry.flags().is_lost)
            }),
            BlockRecords::RootOnly(root) => root.wanted.contains_key(&id),
        }
    }

    /// Reports a lost block as recovered if enough of its packets are there again.
    pub(super) fn report_if_recovered(&mut self, id: EchoBlockId) {
        let needed = self.shape.needed;
        let BlockRecords::Index(index) = &mut self.records else {
            return;
        };
        let Some(mut entry) = index.find(id) else {
            return;
        };
        let here = entry.lanes().filter(|(_, lane)| !matches!(lane, LaneState::Overdue { .. })).count();
        let flags = entry.flags();
        if flags.is_lost && here >= needed {
            entry.set_flags(Flags { is_lost: false, ..flags });
            self.outputs.push_back(EchoOutput::Recovered { id });
        }
    }

    /// Sends the overdue packets of a block again, to their hosts, or to others if those do not answer.
    pub(super) fn rebuild(&mut self, now: Time, id: EchoBlockId, block: &Bytes) {
        let Some(damage) = self.damage(id) else {
            return;
        };
        let encoder = BlockEncoder::new(self.shape, block);
        let (mut taken, mut nth) = (damage.taken, 0);
        for (lane, from) in damage.overdue.into_iter().flatten() {
            let Some(to) = self.rebuild_at(from, &taken, block) else {
                // The packet stays overdue. It is tried again when a packet of the block arrives, or a host
                // answers.
                self.is_unrepaired = true;
                continue;
            };
            nth += 1;
            if let Some(count) = taken.get_mut(usize::from(to.0)) {
                *count += 1;
            }
            let piece = Piece { id, lane, block_bytes: block.len() as u32 };
            self.counters.rebuilt += 1;
            let item = QueuedPacket { piece, body: encoder.piece(usize::from(lane.0)), unsent_block: None };
            self.requeue(now, nth, (from, to), item);
        }
    }

    fn damage(&mut self, id: EchoBlockId) -> Option<Damage> {
        let BlockRecords::Index(index) = &mut self.records else {
            return None;
        };
        let entry = index.find(id)?;
        let mut damage = Damage { overdue: [None; LANES_MAX], taken: [0; HOSTS_MAX] };
        for ((lane, state), slot) in entry.lanes().zip(&mut damage.overdue) {
            if let LaneState::Overdue { host, .. } = state {
                *slot = Some((lane, host));
            } else if let Some(count) = damage.taken.get_mut(usize::from(state.host().0)) {
                *count += 1;
            }
        }
        damage.overdue.iter().any(Option::is_some).then_some(damage)
    }

    /// Returns the host for a packet that was overdue at `from`, if the send queues have room.
    fn rebuild_at(&self, from: HostId, taken: &[u64; HOSTS_MAX], block: &Bytes) -> Option<HostId> {
        let old = self.hosts.get(usize::from(from.0))?;
        let to = if old.is_responsive() { from } else { self.best_host(Distance::Any, taken)? };
        let waiting: usize = self.hosts.iter().map(|host| host.send_queue.bytes()).sum();
        (waiting + send_queue::queued_bytes(self.shape.piece_bytes(block.len())) <= SEND_QUEUE_BYTES_MAX)
            .then_some(to)
    }

    fn requeue(&mut self, now: Time, nth: u32, (from, to): (HostId, HostId), item: QueuedPacket) {
        let piece = item.piece;
        let copies = if self.shape.is_copies() { self.shape.lanes as u32 } else { 0 };
        if let Some(old) = self.host_mut(from) {
            old.assigned = old.assigned.saturating_sub(1);
        }
        let Some(record) = self.hosts.get_mut(usize::from(to.0)) else {
            return;
        };
        record.assigned += 1;
        let step = record.busy_cycle().unwrap_or_default().checked_div(copies).unwrap_or_default();
        record.send_queue.push(now + step * nth, item);
        if let BlockRecords::Index(index) = &mut self.records
            && let Some(mut entry) = index.find(piece.id)
        {
            entry.set_lane(piece.lane, LaneState::Queued { host: to });
        }
    }

    /// Moves a packet queued for a silent host to another one. Without another host it stays queued.
    pub(super) fn move_to_other_host(&mut self, now: Time, from: HostId, item: QueuedPacket) {
        let piece = item.piece;
        let mut taken = [0; HOSTS_MAX];
        let is_known = match &mut self.records {
            BlockRecords::Index(index) => index.find(piece.id).is_some_and(|entry| {
                for (_, lane) in entry.lanes().filter(|&(lane, _)| lane != piece.lane) {
                    if let Some(count) = taken.get_mut(usize::from(lane.host().0)) {
                        *count += 1;
                    }
                }
                entry.lane(piece.lane) == Some(LaneState::Queued { host: from })
            }),
            BlockRecords::RootOnly(_) => true,
        };
        if !is_known {
            return;
        }
        let to = self.best_host(Distance::Any, &taken).unwrap_or(from);
        self.requeue(now, 0, (from, to), item);
    }

    /// Holds a packet that came too close behind another copy of its block.
    pub(super) fn hold(&mut self, arrival: &Arrival, span: Duration, packet: &[u8]) -> ReceiveVerdict {
        if let Some(record) = self.host_mut(arrival.host) {
            let body = Bytes::copy_from_slice(packet::body(packet));
            record
                .send_queue
                .push(arrival.now + span, QueuedPacket { piece: arrival.piece, body, unsent_block: None });
            self.counters.held += 1;
        }
        ReceiveVerdict::Absorb
    }
}
