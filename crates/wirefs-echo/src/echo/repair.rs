//! What is done with the contents of a packet whose block needs them.

use std::time::Duration;

use bytes::Bytes;
use wirefs_op::Time;

use super::receive::Arrival;
use super::{Distance, Echo, Known, Output, Verdict};
use crate::block::BlockId;
use crate::host::HostId;
use crate::index::{Flags, Lane};
use crate::limits::{HOSTS_MAX, LANES_MAX, OUTBOX_BYTES_MAX};
use crate::outbox::{self, Item};
use crate::packet::{self, LaneId, Piece};
use crate::pieces::Cut;

/// The packets of a block that are to be rebuilt, and the hosts of all of them.
struct Damage {
    overdue: [Option<(LaneId, HostId)>; LANES_MAX],
    taken: [u64; HOSTS_MAX],
}

impl Echo {
    /// Puts a block together from this piece and those that came by before, if that is of use: for whoever waits for it,
    /// and to rebuild its packets that are overdue.
    pub(super) fn care(&mut self, now: Time, piece: Piece, body: &[u8]) {
        self.note_found(piece.id);
        if !self.needs_contents(piece.id) {
            self.gather.forget(piece.id);
            return;
        }
        if let Some(block) = self.gather.add(piece, body) {
            self.answer(piece.id, Some(block.clone()));
            self.rebuild(now, piece.id, &block);
        }
    }

    pub(super) fn needs_contents(&mut self, id: BlockId) -> bool {
        match &mut self.known {
            Known::Index(index) => index.find(id).is_some_and(|entry| {
                // What is left of a lost block is no use to anybody until more of it comes.
                let is_damaged = entry.lanes().any(|(_, lane)| matches!(lane, Lane::Overdue { .. }));
                entry.flags().is_wanted || (is_damaged && !entry.flags().is_lost)
            }),
            Known::Root(root) => root.wanted.contains_key(&id),
        }
    }

    /// Reports a lost block as found, if enough of its packets are there again.
    pub(super) fn note_found(&mut self, id: BlockId) {
        let needed = self.shape.needed;
        let Known::Index(index) = &mut self.known else {
            return;
        };
        let Some(mut entry) = index.find(id) else {
            return;
        };
        let here = entry.lanes().filter(|(_, lane)| !matches!(lane, Lane::Overdue { .. })).count();
        let flags = entry.flags();
        if flags.is_lost && here >= needed {
            entry.set_flags(Flags { is_lost: false, ..flags });
            self.outputs.push_back(Output::Found { id });
        }
    }

    /// Sends the packets of a block again that are overdue: to their hosts, or where these do not answer, to others.
    pub(super) fn rebuild(&mut self, now: Time, id: BlockId, block: &Bytes) {
        let Some(damage) = self.damage(id) else {
            return;
        };
        let cut = Cut::new(self.shape, block);
        let (mut taken, mut nth) = (damage.taken, 0);
        for (lane, from) in damage.overdue.into_iter().flatten() {
            let Some(to) = self.rebuild_at(from, &taken, block) else {
                // It stays overdue, and is tried again when a packet of the block comes, or a host answers.
                self.is_unrepaired = true;
                continue;
            };
            nth += 1;
            if let Some(count) = taken.get_mut(usize::from(to.0)) {
                *count += 1;
            }
            let piece = Piece { id, lane, block_bytes: block.len() as u32 };
            self.counters.rebuilt += 1;
            let item = Item { piece, body: cut.piece(usize::from(lane.0)), kept: None };
            self.relaunch(now, nth, (from, to), item);
        }
    }

    fn damage(&mut self, id: BlockId) -> Option<Damage> {
        let Known::Index(index) = &mut self.known else {
            return None;
        };
        let entry = index.find(id)?;
        let mut damage = Damage { overdue: [None; LANES_MAX], taken: [0; HOSTS_MAX] };
        for ((lane, state), slot) in entry.lanes().zip(&mut damage.overdue) {
            if let Lane::Overdue { host, .. } = state {
                *slot = Some((lane, host));
            } else if let Some(count) = damage.taken.get_mut(usize::from(state.host().0)) {
                *count += 1;
            }
        }
        damage.overdue.iter().any(Option::is_some).then_some(damage)
    }

    /// The host for a packet that was overdue at `from`, if it has room in its outbox.
    fn rebuild_at(&self, from: HostId, taken: &[u64; HOSTS_MAX], block: &Bytes) -> Option<HostId> {
        let old = self.hosts.get(usize::from(from.0))?;
        let to = if old.is_prompt() { from } else { self.best_host(Distance::Any, taken)? };
        let waiting: usize = self.hosts.iter().map(|host| host.outbox.bytes()).sum();
        (waiting + outbox::item_bytes(self.shape.piece_bytes(block.len())) <= OUTBOX_BYTES_MAX).then_some(to)
    }

    fn relaunch(&mut self, now: Time, nth: u32, (from, to): (HostId, HostId), item: Item) {
        let piece = item.piece;
        let copies = if self.shape.is_copies() { self.shape.lanes as u32 } else { 0 };
        if let Some(old) = self.host_mut(from) {
            old.assigned = old.assigned.saturating_sub(1);
        }
        let Some(record) = self.hosts.get_mut(usize::from(to.0)) else {
            return;
        };
        record.assigned += 1;
        let step = record.driven_lap().unwrap_or_default().checked_div(copies).unwrap_or_default();
        record.outbox.push(now + step * nth, item);
        if let Known::Index(index) = &mut self.known
            && let Some(mut entry) = index.find(piece.id)
        {
            entry.set_lane(piece.lane, Lane::Here { host: to });
        }
    }

    /// Sends a packet that waited for a host that fell silent to another one; where there is none, it goes on waiting.
    pub(super) fn move_away(&mut self, now: Time, from: HostId, item: Item) {
        let piece = item.piece;
        let mut taken = [0; HOSTS_MAX];
        let is_known = match &mut self.known {
            Known::Index(index) => index.find(piece.id).is_some_and(|entry| {
                for (_, lane) in entry.lanes().filter(|&(lane, _)| lane != piece.lane) {
                    if let Some(count) = taken.get_mut(usize::from(lane.host().0)) {
                        *count += 1;
                    }
                }
                entry.lane(piece.lane) == Some(Lane::Here { host: from })
            }),
            Known::Root(_) => true,
        };
        if !is_known {
            return;
        }
        let to = self.best_host(Distance::Any, &taken).unwrap_or(from);
        self.relaunch(now, 0, (from, to), item);
    }

    /// Holds back a packet that came too close behind another copy of its block.
    pub(super) fn hold(&mut self, arrival: &Arrival, span: Duration, packet: &[u8]) -> Verdict {
        if let Some(record) = self.host_mut(arrival.host) {
            let body = Bytes::copy_from_slice(packet::body(packet));
            record.outbox.push(arrival.now + span, Item { piece: arrival.piece, body, kept: None });
            self.counters.held += 1;
        }
        Verdict::Absorb
    }
}
