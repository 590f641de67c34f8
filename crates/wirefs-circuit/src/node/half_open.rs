//! The handshake of the responder.

use bytes::Bytes;
use wirefs_op::Time;

use crate::address::{GroupId, NetworkPath};
use crate::counters::DropReason;
use crate::group::Group;
use crate::handshake::{self, HandshakeState, Hello};
use crate::limits::{HALF_OPEN_MAX, HALF_OPEN_PER_ADDRESS_MAX, HALF_OPEN_WITHOUT_COOKIE_MAX, HANDSHAKE_MAX};
use crate::node::{CircuitNode, Slot};
use crate::output::{CircuitOutput, CloseReason};

/// A handshake as responder.
#[derive(Debug)]
pub(super) struct HalfOpen {
    network_path: NetworkPath,
    hello: Hello,
    reply: Bytes,
    state: HandshakeState,
    pub(super) until: Time,
}

impl CircuitNode {
    /// Answers a hello. When many handshakes are pending, requires a cookie.
    ///
    /// # Cost
    /// Without a valid cookie: a hash and a packet. Else one key agreement and one signature.
    pub(super) fn take_hello(
        &mut self,
        now: Time,
        network_path: NetworkPath,
        group: GroupId,
        packet: &[u8],
    ) -> Result<(), DropReason> {
        let hello = Hello::decode(group, packet).ok_or(DropReason::Malformed)?;
        let (mut pending_handshakes, mut of_path, mut oldest, mut known) = (0, 0, None, None);
        for (id, slot) in self.table.entries() {
            match slot {
                Slot::HalfOpen(half) => {
                    pending_handshakes += 1;
                    if half.network_path != network_path {
                        continue;
                    }
                    of_path += 1;
                    if oldest.is_none_or(|(until, _)| half.until < until) {
                        oldest = Some((half.until, id));
                    }
                    if half.hello.public == hello.public && half.hello.group == group {
                        known = Some(half.reply.clone());
                    }
                }
                // A rejected peer that is still being notified.
                Slot::Established(group) => pending_handshakes += usize::from(group.close_reason().is_some()),
                Slot::Vacant | Slot::Dialing(_) => {}
            }
        }
        if let Some(reply) = known {
            self.queue(network_path, reply);
            return Ok(());
        }
        let is_crowded =
            pending_handshakes >= HALF_OPEN_WITHOUT_COOKIE_MAX || of_path >= HALF_OPEN_PER_ADDRESS_MAX;
        if is_crowded
            && !self.cookie_key.is_valid(
                now,
                network_path.card,
                network_path.remote,
                &hello.public,
                &hello.cookie,
            )
        {
            let cookie = self.cookie_key.cookie(now, network_path.card, network_path.remote, &hello.public);
            self.queue(network_path, handshake::encode_cookie(group, &cookie).into());
            self.counters.cookies += 1;
            return Ok(());
        }
        // The cookie is valid, so the oldest handshake from this address, possibly spoofed, is evicted.
        if let Some((_, id)) = oldest.filter(|_| of_path >= HALF_OPEN_PER_ADDRESS_MAX) {
            self.table.vacate(id);
            pending_handshakes -= 1;
        }
        if pending_handshakes >= HALF_OPEN_MAX {
            return Err(DropReason::HandshakeRejected);
        }
        let own = self.table.take().ok_or(DropReason::HandshakeRejected)?;
        let key = self.keys.pop().ok_or(DropReason::HandshakeRejected)?;
        let (reply, state) = handshake::reply(&self.identity, &hello, own, key).ok_or(DropReason::Forged)?;
        let reply = Bytes::from(reply);
        let half = HalfOpen { network_path, hello, reply: reply.clone(), state, until: now + HANDSHAKE_MAX };
        self.table.put(own, Slot::HalfOpen(Box::new(half)));
        self.queue(network_path, reply);
        Ok(())
    }

    /// Completes a handshake.
    pub(super) fn take_finish(
        &mut self,
        now: Time,
        network_path: NetworkPath,
        id: GroupId,
        packet: &[u8],
    ) -> Result<(), DropReason> {
        let half = match self.table.slot(id) {
            Some(Slot::HalfOpen(half)) if half.network_path == network_path => half,
            Some(Slot::HalfOpen(_)) => return Err(DropReason::Forged),
            // A retransmission: our first sealed packet has not arrived yet.
            Some(Slot::Established(_)) => return Ok(()),
            Some(Slot::Vacant | Slot::Dialing(_)) | None => return Err(DropReason::UnknownGroup),
        };
        let (peer, path, secrets) = handshake::take_finish(&half.state, packet).ok_or(DropReason::Forged)?;
        let remote = half.hello.group;
        let mut group = Group::responder(now, peer, remote, secrets, network_path, path, &self.cards);
        if self.trust.covers(peer) {
            group.is_announced = true;
            self.outputs.push_back(CircuitOutput::Established { group: id, peer, is_initiator: false });
            self.table.put(id, Slot::Established(Box::new(group)));
            self.collect_outputs(id);
            return Ok(());
        }
        group.close(now, CloseReason::Local);
        self.table.put(id, Slot::Established(Box::new(group)));
        Err(DropReason::HandshakeRejected)
    }
}
