//! Processing of received packets.

use super::Node;
use crate::gossip::UpdateKind;
use crate::key::NodeKey;
use crate::member::Liveness;
use crate::output::{Destination, NodeOutput};
use crate::packet::{Message, Packet, Update};
use crate::record::SignedRecord;
use crate::table::RecordOutcome;
use core::net::SocketAddr;
use wirefs_op::Time;

impl Node {
    /// Processes a packet. A packet that is malformed, forged, replayed or from an untrusted sender only increments a
    /// counter.
    pub(super) fn receive(&mut self, now: Time, from: SocketAddr, bytes: &[u8]) {
        let Some(packet) = Packet::read(bytes) else {
            self.counters.malformed += 1;
            return;
        };
        if packet.sender == self.own.key() {
            return;
        }
        if !self.trust.admits(&packet.sender) {
            self.counters.untrusted += 1;
            return;
        }
        if !packet.is_genuine(bytes) {
            self.counters.forged += 1;
            return;
        }
        if self.is_replay(&packet) {
            self.counters.replayed += 1;
            return;
        }
        if !self.register_sender(now, from, &packet) {
            self.counters.untrusted += 1;
            return;
        }
        self.counters.received += 1;
        let page_end = packet.page_end();
        let Packet { sender, message, updates, .. } = packet;
        // One refutation answers all claims of one packet: else a packet that guesses the next incarnations would make
        // each of its updates count.
        let mut contested = None;
        for update in updates {
            contested = contested.max(self.apply_update(now, &sender, update));
        }
        if let Some(incarnation) = contested {
            self.refute(now, incarnation);
        }
        match message {
            Message::TablePage { more } => self.continue_pull(&sender, page_end.filter(|_| more)),
            message => self.answer(now, from, &sender, message),
        }
        self.notify_if_outdated(now, &sender, from);
    }

    fn is_replay(&mut self, packet: &Packet) -> bool {
        let known = self.table.find_mut(&packet.sender);
        known.is_some_and(|member| !member.window.admit(packet.number))
    }

    /// Merges the sender's own record first. Returns whether the sender is a known node afterwards.
    fn register_sender(&mut self, now: Time, from: SocketAddr, packet: &Packet) -> bool {
        let is_new = self.table.find(&packet.sender).is_none();
        let own_record = packet.updates.iter().find_map(|update| match update {
            Update::Record { signed, .. } if signed.record.key == packet.sender => Some(signed.clone()),
            Update::Record { .. } | Update::Claim { .. } | Update::NameConflict { .. } => None,
        });
        if let Some(signed) = own_record {
            self.merge_record(now, &packet.sender, signed, Liveness::Alive);
        }
        let Some(member) = self.table.find_mut(&packet.sender) else { return false };
        if is_new {
            member.window.admit(packet.number);
        }
        member.last_source = Some(from);
        if is_new {
            if self.table.len() == 1 {
                self.own.restart_settling(now);
            }
            self.greet(now, packet.sender);
        }
        true
    }

    /// Greets a new node: it may not know this node, and may know others.
    fn greet(&mut self, now: Time, key: NodeKey) {
        let nonce = self.random.next();
        self.ping(&key, nonce);
        if !self.own.is_settled(now) {
            self.pull(key);
        }
    }

    /// Merges one update. Returns the incarnation to refute if the update contests this node.
    fn apply_update(&mut self, now: Time, sender: &NodeKey, update: Update) -> Option<u64> {
        // A sender that counts as dead may have been partitioned, and then believes that all others are dead.
        let counts = self.table.find(sender).is_some_and(|member| member.state.is_up());
        match update {
            Update::Record { signed, .. } if signed.record.key == *sender => {}
            Update::Record { state, signed } if signed.record.key == self.own.key() => {
                return self.check_own_record(state, &signed);
            }
            Update::Record { state, signed } => {
                self.merge_record(now, sender, signed, if counts { state } else { Liveness::Alive });
            }
            Update::Claim { state, key, incarnation } if key == self.own.key() => {
                let is_current = incarnation == self.own.signed.record.incarnation;
                return (state != Liveness::Alive && is_current).then_some(incarnation);
            }
            Update::Claim { state, key, incarnation } if counts => {
                self.apply_claim(now, key, incarnation, state);
            }
            Update::Claim { .. } => {}
            Update::NameConflict { settled, signed } => self.handle_name_conflict(now, settled, signed),
        }
        None
    }

    /// Merges a node's record, and the sender's claim about its state.
    fn merge_record(&mut self, now: Time, sender: &NodeKey, signed: SignedRecord, state: Liveness) {
        let (key, incarnation) = (signed.record.key, signed.record.incarnation);
        if !self.trust.admits(&key) {
            self.counters.untrusted += 1;
            return;
        }
        // A node that is unknown here and has long been dead elsewhere is ignored.
        if !state.is_up() && self.table.find(&key).is_none() {
            return;
        }
        let rival = (signed.record.name == self.own.signed.record.name).then(|| signed.clone());
        let learned = match key == *sender {
            true => self.table.merge_own(now, signed),
            false => self.table.merge_relayed(now, signed),
        };
        match learned {
            RecordOutcome::Joined => {
                self.publish_change(key, UpdateKind::Record);
                if let Some(rival) = rival {
                    self.compare_start_times(now, &rival);
                }
            }
            RecordOutcome::Updated { refuted: true } => {
                self.probes.cancel(&key);
                self.publish_change(key, UpdateKind::Record);
            }
            RecordOutcome::Updated { refuted: false } => {
                self.table.assign_names(self.own.name());
                self.gossip.add(key, UpdateKind::Record);
                let state = self.table.find(&key).map_or(Liveness::Alive, |member| member.state);
                self.push(NodeOutput::Changed { key, state });
            }
            RecordOutcome::Left => {
                self.probes.cancel(&key);
                self.publish_change(key, UpdateKind::Record);
            }
            RecordOutcome::Unchanged => {}
            RecordOutcome::Stale => self.counters.stale += 1,
            RecordOutcome::BadSignature => self.counters.forged += 1,
            RecordOutcome::TableFull => self.counters.table_full += 1,
        }
        self.apply_claim(now, key, incarnation, state);
    }

    fn apply_claim(&mut self, now: Time, key: NodeKey, incarnation: u64, state: Liveness) {
        if self.table.merge_claim(now, &key, incarnation, state, self.timing.suspicion_timeout) {
            self.publish_change(key, UpdateKind::Claim);
        }
    }

    /// Checks a copy of this node's own record. It may be from a later incarnation than the current one, if the clock
    /// was set back.
    fn check_own_record(&self, state: Liveness, signed: &SignedRecord) -> Option<u64> {
        let (own, events) = (&self.own.signed.record, &signed.record);
        let is_later = events.order() > own.order() && signed.bytes != self.own.signed.bytes;
        let is_contested = !state.is_up() || state == Liveness::Suspect;
        let counts = is_later && signed.is_genuine() || is_contested && events.incarnation == own.incarnation;
        counts.then_some(events.incarnation)
    }

    /// Raises the incarnation: one signature. The broadcast is rate-limited, so repeated claims cost few packets.
    fn refute(&mut self, now: Time, incarnation: u64) {
        if !self.own.signed.record.leaving && self.own.raise_incarnation(incarnation) {
            self.counters.refutations += 1;
            self.timers.schedule_broadcast(now);
        }
    }

    /// Of two new nodes with one name, the one that started first gets it.
    fn compare_start_times(&mut self, now: Time, rival: &SignedRecord) {
        let own = &self.own.signed.record;
        if !self.own.is_settled(now) && (rival.record.born, rival.record.key) < (own.born, own.key) {
            self.yield_name(rival.record.key);
        }
    }

    fn handle_name_conflict(&mut self, now: Time, settled: bool, holder: SignedRecord) {
        let own = &self.own.signed.record;
        let is_our_name = holder.record.name == own.name && holder.record.key != own.key;
        if !is_our_name || self.own.is_settled(now) || !self.trust.admits(&holder.record.key) {
            return;
        }
        let was_first = (holder.record.born, holder.record.key) < (own.born, own.key);
        if (settled || was_first) && holder.is_genuine() {
            self.yield_name(holder.record.key);
        }
    }

    fn yield_name(&mut self, holder: NodeKey) {
        if !self.own.yielded_name {
            self.own.yielded_name = true;
            self.table.assign_names(None);
            let name = self.own.signed.record.name.clone();
            self.push(NodeOutput::NameTaken { name, holder });
        }
    }

    fn answer(&mut self, now: Time, from: SocketAddr, sender: &NodeKey, message: Message) {
        match message {
            Message::Announce | Message::TablePage { .. } => {}
            Message::Ping { nonce } => self.send(Destination::Address(from), Message::Ack { nonce }, &[]),
            Message::Ack { nonce } => {
                self.probes.handle_ack(sender, nonce);
                if let Some((requester, requester_nonce)) = self.probes.finish_indirect(sender, nonce) {
                    self.send(
                        Destination::Address(requester),
                        Message::IndirectAck { nonce: requester_nonce },
                        &[],
                    );
                }
            }
            Message::IndirectAck { nonce } => self.probes.handle_indirect_ack(nonce),
            Message::PingRequest { nonce, target } => {
                let own_nonce = self.random.next();
                if self.table.find(&target).is_some()
                    && self.probes.begin_indirect(now, target, own_nonce, from, nonce)
                {
                    self.ping(&target, own_nonce);
                }
            }
            Message::Pull { after } => self.send_table_page(from, after),
        }
    }

    /// Requests the next page of a table right after a page that was not the last.
    fn continue_pull(&mut self, sender: &NodeKey, more_after: Option<NodeKey>) {
        if self.timers.pull_source.take_if(|key| key == sender).is_none() {
            return;
        }
        match more_after.filter(|last| *last > self.timers.pull_cursor) {
            Some(last) => {
                self.timers.pull_cursor = last;
                self.pull(*sender);
            }
            None => self.timers.pull_cursor = NodeKey::default(),
        }
    }

    /// Notifies a sender that is suspected or dead here, or whose name another node holds.
    fn notify_if_outdated(&mut self, now: Time, sender: &NodeKey, from: SocketAddr) {
        let is_outdated = self.table.find(sender).is_some_and(|member| {
            let is_contested = matches!(member.state, Liveness::Suspect | Liveness::Dead);
            is_contested || member.state.is_up() && !member.holds_name
        });
        if is_outdated {
            self.notify(now, sender, from);
        }
    }
}
