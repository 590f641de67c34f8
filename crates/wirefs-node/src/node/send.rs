//! Putting packets together.

use super::Node;
use crate::gossip::Form;
use crate::key::NodeKey;
use crate::limits::TELL_INTERVAL;
use crate::member::{Liveness, Member};
use crate::output::{Destination, Output};
use crate::packet::{About, Draft, PartOf};
use core::net::SocketAddr;
use wirefs_op::Time;

impl Node {
    /// Sends a packet with our own record, these parts, and as much news as fits.
    pub(super) fn send(&mut self, to: Destination, about: About, parts: &[PartOf<'_>]) {
        let mut draft = Draft::new(self.own.key(), self.own.next_number(), about);
        draft.put(&PartOf::Record(Liveness::Alive, &self.own.signed));
        for part in parts {
            draft.put(part);
        }
        self.put_news(&mut draft);
        self.finish(to, draft);
    }

    fn finish(&mut self, to: Destination, draft: Draft) {
        if let Some(packet) = draft.finish(&self.own.signer) {
            self.counters.sent += 1;
            self.push(Output::Send { to, packet });
        }
    }

    fn put_news(&mut self, draft: &mut Draft) {
        for (key, form) in self.gossip.next() {
            let Some(member) = self.table.find(&key) else {
                self.gossip.forget(&key);
                continue;
            };
            let part = match form {
                Form::Record => PartOf::Record(member.state, &member.signed),
                Form::Claim => PartOf::Claim(member.state, key, member.record().incarnation),
            };
            // A record may not fit where a claim behind it does.
            if draft.put(&part) {
                self.gossip.told(&key, self.table.len());
            }
        }
    }

    /// Tells the segment, and those peers, named or registered, of which nothing is known.
    pub(super) fn announce(&mut self) {
        self.send(Destination::Segment, About::Announce, &[]);
        let known: Vec<SocketAddr> = self
            .table
            .iter()
            .filter(|(_, member)| member.state.is_up())
            .flat_map(|(_, member)| member.heard_from.into_iter().chain(member.record().sockets()))
            .collect();
        let unknown: Vec<SocketAddr> =
            self.peers.iter().chain(&self.registered).filter(|peer| !known.contains(peer)).copied().collect();
        for peer in unknown {
            self.send(Destination::Address(peer), About::Announce, &[]);
        }
    }

    /// Pings a node, at all its addresses while it was never heard. One that is suspected learns of it first of all.
    pub(super) fn ping(&mut self, key: &NodeKey, nonce: u64) {
        let Some(member) = self.table.find(key) else { return };
        let addresses: Vec<SocketAddr> = member.addresses().collect();
        let (state, incarnation) = (member.state, member.record().incarnation);
        let claim = PartOf::Claim(state, *key, incarnation);
        let parts: &[PartOf<'_>] = if state == Liveness::Alive { &[] } else { &[claim] };
        for address in addresses {
            self.send(Destination::Address(address), About::Ping { nonce }, parts);
        }
    }

    /// Says to a node what it should know of itself: that it is not believed to live, that a newer life of it is known, that
    /// its name is another's.
    pub(super) fn tell(&mut self, now: Time, key: &NodeKey, from: SocketAddr) {
        let Some(member) = self.table.find_mut(key) else { return };
        if member.told_at.is_some_and(|at| now.since(at) < TELL_INTERVAL) {
            return;
        }
        member.told_at = Some(now);
        let (state, signed, holds_name) = (member.state, member.signed.clone(), member.holds_name);
        let own_settled = self.own.is_settled(now);
        let holder = match self.table.holder(&signed.record.name) {
            _ if holds_name || !state.is_up() => None,
            Some(holder) => {
                Some((now.since(holder.up_since) >= crate::limits::SETTLING, holder.signed.clone()))
            }
            None if self.own.signed.record.name == signed.record.name => {
                Some((own_settled, self.own.signed.clone()))
            }
            None => None,
        };
        let mut parts = vec![PartOf::Record(state, &signed)];
        if let Some((settled, holder)) = &holder {
            parts = vec![PartOf::Taken(*settled, holder)];
        }
        let nonce = self.chance.next();
        self.send(Destination::Address(from), About::Ping { nonce }, &parts);
    }

    /// Tells a page of the table.
    pub(super) fn tell_table(&mut self, to: SocketAddr, after: NodeKey) {
        let number = self.own.next_number();
        // Found out first, since the head says it.
        for more in [false, true] {
            let mut draft = Draft::new(self.own.key(), number, About::Table { more });
            draft.put(&PartOf::Record(Liveness::Alive, &self.own.signed));
            let put = |member: &Member| draft.put(&PartOf::Record(member.state, &member.signed));
            let is_full = !self.table.after(after).map(|(_, member)| member).all(put);
            if is_full == more {
                return self.finish(Destination::Address(to), draft);
            }
        }
    }
}
