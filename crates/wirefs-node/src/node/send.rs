//! Composing packets.

use super::Node;
use crate::gossip::UpdateKind;
use crate::key::NodeKey;
use crate::limits::NOTIFY_INTERVAL;
use crate::member::{Liveness, Member};
use crate::output::{Destination, NodeOutput};
use crate::packet::{Draft, Message, UpdateRef};
use core::net::SocketAddr;
use wirefs_op::Time;

impl Node {
    /// Sends a packet with our own record, these updates, and as much gossip as fits.
    pub(super) fn send(&mut self, to: Destination, message: Message, updates: &[UpdateRef<'_>]) {
        let mut draft = Draft::new(self.own.key(), self.own.next_number(), message);
        draft.put(&UpdateRef::Record(Liveness::Alive, &self.own.signed));
        for update in updates {
            draft.put(update);
        }
        self.put_updates(&mut draft);
        self.finish(to, draft);
    }

    fn finish(&mut self, to: Destination, draft: Draft) {
        if let Some(packet) = draft.finish(&self.own.signer) {
            self.counters.sent += 1;
            self.push(NodeOutput::Send { to, packet });
        }
    }

    fn put_updates(&mut self, draft: &mut Draft) {
        for (key, kind) in self.gossip.next() {
            let Some(member) = self.table.find(&key) else {
                self.gossip.remove(&key);
                continue;
            };
            let update = match kind {
                UpdateKind::Record => UpdateRef::Record(member.state, &member.signed),
                UpdateKind::Claim => UpdateRef::Claim(member.state, key, member.record().incarnation),
            };
            // A record may not fit where a later claim does.
            if draft.put(&update) {
                self.gossip.record_send(&key, self.table.len());
            }
        }
    }

    /// Announces this node on the segment, and to those peers, configured or registered, that are still unknown.
    pub(super) fn announce(&mut self) {
        self.send(Destination::Segment, Message::Announce, &[]);
        let known: Vec<SocketAddr> = self
            .table
            .iter()
            .filter(|(_, member)| member.state.is_up())
            .flat_map(|(_, member)| member.last_source.into_iter().chain(member.record().sockets()))
            .collect();
        let unknown: Vec<SocketAddr> =
            self.peers.iter().chain(&self.registered).filter(|peer| !known.contains(peer)).copied().collect();
        for peer in unknown {
            self.send(Destination::Address(peer), Message::Announce, &[]);
        }
    }

    /// Pings a node; at all addresses of its record until a packet of it has arrived. A suspect gets the claim about
    /// itself.
    pub(super) fn ping(&mut self, key: &NodeKey, nonce: u64) {
        let Some(member) = self.table.find(key) else { return };
        let addresses: Vec<SocketAddr> = member.addresses().collect();
        let (state, incarnation) = (member.state, member.record().incarnation);
        let claim = UpdateRef::Claim(state, *key, incarnation);
        let updates: &[UpdateRef<'_>] = if state == Liveness::Alive { &[] } else { &[claim] };
        for address in addresses {
            self.send(Destination::Address(address), Message::Ping { nonce }, updates);
        }
    }

    /// Notifies a node of what it should know of itself: that it is suspected or dead, that a later incarnation is
    /// known, or that another node holds its name.
    pub(super) fn notify(&mut self, now: Time, key: &NodeKey, from: SocketAddr) {
        let Some(member) = self.table.find_mut(key) else { return };
        if member.notified_at.is_some_and(|at| now.since(at) < NOTIFY_INTERVAL) {
            return;
        }
        member.notified_at = Some(now);
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
        let mut updates = vec![UpdateRef::Record(state, &signed)];
        if let Some((settled, holder)) = &holder {
            updates = vec![UpdateRef::NameConflict(*settled, holder)];
        }
        let nonce = self.random.next();
        self.send(Destination::Address(from), Message::Ping { nonce }, &updates);
    }

    /// Sends a page of the table.
    pub(super) fn send_table_page(&mut self, to: SocketAddr, after: NodeKey) {
        let number = self.own.next_number();
        // Composed first with `more: false`, since the header comes before the records.
        for more in [false, true] {
            let mut draft = Draft::new(self.own.key(), number, Message::TablePage { more });
            draft.put(&UpdateRef::Record(Liveness::Alive, &self.own.signed));
            let put = |member: &Member| draft.put(&UpdateRef::Record(member.state, &member.signed));
            let is_full = !self.table.after(after).map(|(_, member)| member).all(put);
            if is_full == more {
                return self.finish(Destination::Address(to), draft);
            }
        }
    }
}
