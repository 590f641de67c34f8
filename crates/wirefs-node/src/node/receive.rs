//! Taking packets in.

use super::Node;
use crate::gossip::Form;
use crate::key::NodeKey;
use crate::member::Liveness;
use crate::output::{Destination, Output};
use crate::packet::{About, Packet, Part};
use crate::record::SignedRecord;
use crate::table::Learned;
use core::net::SocketAddr;
use wirefs_op::Time;

impl Node {
    /// Takes a packet. What is none, is forged, has counted already, or comes from somebody who is not trusted changes
    /// nothing but a counter.
    pub(super) fn receive(&mut self, now: Time, from: SocketAddr, bytes: &[u8]) {
        let Some(packet) = Packet::read(bytes) else {
            self.counters.malformed += 1;
            return;
        };
        if packet.sender == self.own.key() {
            return;
        }
        if !self.trust.admits(&packet.sender) {
            self.counters.strangers += 1;
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
        if !self.meet(now, from, &packet) {
            self.counters.strangers += 1;
            return;
        }
        self.counters.received += 1;
        let page_end = packet.page_end();
        let Packet { sender, about, parts, .. } = packet;
        // By all that one packet says of us we are doubted once: else each part would count that guesses the next incarnation.
        let mut outlived = None;
        for part in parts {
            outlived = outlived.max(self.take_part(now, &sender, part));
        }
        if let Some(incarnation) = outlived {
            self.refute(now, incarnation);
        }
        match about {
            About::Table { more } => self.turn_page(&sender, page_end.filter(|_| more)),
            about => self.answer(now, from, &sender, about),
        }
        self.remind(now, &sender, from);
    }

    fn is_replay(&mut self, packet: &Packet) -> bool {
        let known = self.table.find_mut(&packet.sender);
        known.is_some_and(|member| !member.window.admit(packet.number))
    }

    /// Takes the sender's own word first; whether the sender is known by then.
    fn meet(&mut self, now: Time, from: SocketAddr, packet: &Packet) -> bool {
        let is_new = self.table.find(&packet.sender).is_none();
        let own_word = packet.parts.iter().find_map(|part| match part {
            Part::Record { signed, .. } if signed.record.key == packet.sender => Some(signed.clone()),
            Part::Record { .. } | Part::Claim { .. } | Part::Taken { .. } => None,
        });
        if let Some(signed) = own_word {
            self.learn(now, &packet.sender, signed, Liveness::Alive);
        }
        let Some(member) = self.table.find_mut(&packet.sender) else { return false };
        if is_new {
            member.window.admit(packet.number);
        }
        member.heard_from = Some(from);
        if is_new {
            if self.table.len() == 1 {
                self.own.meet_first(now);
            }
            self.welcome(now, packet.sender);
        }
        true
    }

    /// A node that was not known: it may not know us either, and may know others.
    fn welcome(&mut self, now: Time, key: NodeKey) {
        let nonce = self.chance.next();
        self.ping(&key, nonce);
        if !self.own.is_settled(now) {
            self.pull(key);
        }
    }

    /// Takes one piece of news. `Some`: it doubts this node in this incarnation, which is to be outlived.
    fn take_part(&mut self, now: Time, sender: &NodeKey, part: Part) -> Option<u64> {
        // Who counts as dead was cut off, perhaps, and thinks that all others are dead.
        let counts = self.table.find(sender).is_some_and(|member| member.state.is_up());
        match part {
            Part::Record { signed, .. } if signed.record.key == *sender => {}
            Part::Record { state, signed } if signed.record.key == self.own.key() => {
                return self.hear_of_own(state, &signed);
            }
            Part::Record { state, signed } => {
                self.learn(now, sender, signed, if counts { state } else { Liveness::Alive });
            }
            Part::Claim { state, key, incarnation } if key == self.own.key() => {
                let is_of_now = incarnation == self.own.signed.record.incarnation;
                return (state != Liveness::Alive && is_of_now).then_some(incarnation);
            }
            Part::Claim { state, key, incarnation } if counts => {
                self.take_claim(now, key, incarnation, state);
            }
            Part::Claim { .. } => {}
            Part::Taken { settled, signed } => self.hear_of_name(now, settled, signed),
        }
        None
    }

    /// Takes a node's word, and another's on how it is.
    fn learn(&mut self, now: Time, sender: &NodeKey, signed: SignedRecord, state: Liveness) {
        let (key, incarnation) = (signed.record.key, signed.record.incarnation);
        if !self.trust.admits(&key) {
            self.counters.strangers += 1;
            return;
        }
        // Who has been dead for long elsewhere is no news here.
        if !state.is_up() && self.table.find(&key).is_none() {
            return;
        }
        let rival = (signed.record.name == self.own.signed.record.name).then(|| signed.clone());
        let learned = match key == *sender {
            true => self.table.learn(now, signed),
            false => self.table.learn_passed_on(now, signed),
        };
        match learned {
            Learned::Came => {
                self.changed(key, Form::Record);
                if let Some(rival) = rival {
                    self.meet_rival(now, &rival);
                }
            }
            Learned::Newer { refuted: true } => {
                self.probing.drop_target(&key);
                self.changed(key, Form::Record);
            }
            Learned::Newer { refuted: false } => {
                self.table.settle_names(self.own.name());
                self.gossip.add(key, Form::Record);
                let state = self.table.find(&key).map_or(Liveness::Alive, |member| member.state);
                self.push(Output::Changed { key, state });
            }
            Learned::Left => {
                self.probing.drop_target(&key);
                self.changed(key, Form::Record);
            }
            Learned::Same => {}
            Learned::Old => self.counters.old += 1,
            Learned::Forged => self.counters.forged += 1,
            Learned::Full => self.counters.full += 1,
        }
        self.take_claim(now, key, incarnation, state);
    }

    fn take_claim(&mut self, now: Time, key: NodeKey, incarnation: u64, state: Liveness) {
        if self.table.claim(now, &key, incarnation, state, self.pace.suspicion) {
            self.changed(key, Form::Claim);
        }
    }

    /// Another passes our own word on: perhaps that of a later life than ours, if our clock was set back.
    fn hear_of_own(&self, state: Liveness, signed: &SignedRecord) -> Option<u64> {
        let (own, said) = (&self.own.signed.record, &signed.record);
        let is_later = said.order() > own.order() && signed.bytes != self.own.signed.bytes;
        let is_doubted = !state.is_up() || state == Liveness::Suspect;
        let counts = is_later && signed.is_genuine() || is_doubted && said.incarnation == own.incarnation;
        counts.then_some(said.incarnation)
    }

    /// Says that it lives: one signature. All are told of it at their time, so that who says it again and again gets no
    /// packets from us but a few.
    fn refute(&mut self, now: Time, incarnation: u64) {
        if !self.own.signed.record.leaving && self.own.outlive(incarnation) {
            self.counters.refutations += 1;
            self.turns.tell_all_soon(now);
        }
    }

    /// Of two nodes that are new, the one that was started first has the name.
    fn meet_rival(&mut self, now: Time, rival: &SignedRecord) {
        let own = &self.own.signed.record;
        if !self.own.is_settled(now) && (rival.record.born, rival.record.key) < (own.born, own.key) {
            self.give_way(rival.record.key);
        }
    }

    fn hear_of_name(&mut self, now: Time, settled: bool, holder: SignedRecord) {
        let own = &self.own.signed.record;
        let is_ours = holder.record.name == own.name && holder.record.key != own.key;
        if !is_ours || self.own.is_settled(now) || !self.trust.admits(&holder.record.key) {
            return;
        }
        let was_first = (holder.record.born, holder.record.key) < (own.born, own.key);
        if (settled || was_first) && holder.is_genuine() {
            self.give_way(holder.record.key);
        }
    }

    fn give_way(&mut self, holder: NodeKey) {
        if !self.own.gave_way {
            self.own.gave_way = true;
            self.table.settle_names(None);
            let name = self.own.signed.record.name.clone();
            self.push(Output::NameTaken { name, holder });
        }
    }

    fn answer(&mut self, now: Time, from: SocketAddr, sender: &NodeKey, about: About) {
        match about {
            About::Announce | About::Table { .. } => {}
            About::Ping { nonce } => self.send(Destination::Address(from), About::Ack { nonce }, &[]),
            About::Ack { nonce } => {
                self.probing.answered(sender, nonce);
                if let Some((asker, asker_nonce)) = self.probing.keep_promise(sender, nonce) {
                    self.send(Destination::Address(asker), About::Vouch { nonce: asker_nonce }, &[]);
                }
            }
            About::Vouch { nonce } => self.probing.vouched(nonce),
            About::Favour { nonce, target } => {
                let own_nonce = self.chance.next();
                if self.table.find(&target).is_some()
                    && self.probing.promise(now, target, own_nonce, from, nonce)
                {
                    self.ping(&target, own_nonce);
                }
            }
            About::Pull { after } => self.tell_table(from, after),
        }
    }

    /// A page came, up to a key behind which there is more: that is asked for at once.
    fn turn_page(&mut self, sender: &NodeKey, more_after: Option<NodeKey>) {
        if self.turns.pulling.take_if(|key| key == sender).is_none() {
            return;
        }
        match more_after.filter(|last| *last > self.turns.pulled_to) {
            Some(last) => {
                self.turns.pulled_to = last;
                self.pull(*sender);
            }
            None => self.turns.pulled_to = NodeKey::default(),
        }
    }

    /// The sender lives, whatever is believed of it; and it should know whose name it has.
    fn remind(&mut self, now: Time, sender: &NodeKey, from: SocketAddr) {
        let needs_it = self.table.find(sender).is_some_and(|member| {
            let is_doubted = matches!(member.state, Liveness::Suspect | Liveness::Dead);
            is_doubted || member.state.is_up() && !member.holds_name
        });
        if needs_it {
            self.tell(now, sender, from);
        }
    }
}
