//! The handshake of the initiator: hellos until a reply arrives.

use std::time::Duration;

use wirefs_op::Time;

use crate::address::{GroupId, NetworkPath, PeerKey};
use crate::cookie::{COOKIE_BYTES, NO_COOKIE};
use crate::counters::DropReason;
use crate::group::Group;
use crate::handshake::{self, HandshakeKey, Hello};
use crate::limits::{COOKIES_MAX, HANDSHAKE_MAX, HANDSHAKE_WAIT_MAX, HANDSHAKE_WAIT_MIN, WRONG_PEERS_MAX};
use crate::node::{CircuitNode, Slot};
use crate::output::{CircuitOutput, DialFault};

/// A handshake as initiator.
#[derive(Debug)]
pub(super) struct Dialing {
    network_paths: Vec<NetworkPath>,
    expected: Option<PeerKey>,
    key: Option<HandshakeKey>,
    cookie: [u8; COOKIE_BYTES],
    /// Cookies that triggered an immediate hello.
    cookies: u32,
    /// The path of the next hello.
    next_path: usize,
    next: Time,
    wait: Duration,
    until: Time,
    /// Replies with an unexpected key.
    wrong_peers: u32,
}

impl Dialing {
    pub(super) fn new(now: Time, network_paths: &[NetworkPath], expected: Option<PeerKey>) -> Dialing {
        Dialing {
            network_paths: network_paths.to_vec(),
            expected,
            key: None,
            cookie: NO_COOKIE,
            cookies: 0,
            next_path: 0,
            next: now,
            wait: HANDSHAKE_WAIT_MIN,
            until: now + HANDSHAKE_MAX,
            wrong_peers: 0,
        }
    }

    pub(super) fn deadline(&self) -> Time {
        self.next.min(self.until)
    }
}

impl CircuitNode {
    pub(super) fn tick_dialing(&mut self, now: Time, id: GroupId) {
        let Some(Slot::Dialing(dialing)) = self.table.slot(id) else {
            return;
        };
        if dialing.until <= now {
            self.table.vacate(id);
            self.outputs.push_back(CircuitOutput::Failed { group: id, reason: DialFault::Timeout });
            return;
        }
        if dialing.next > now {
            return;
        }
        dialing.next = now + dialing.wait;
        dialing.wait = (dialing.wait * 2).min(HANDSHAKE_WAIT_MAX);
        if dialing.key.is_none() {
            dialing.key = self.keys.pop();
        }
        let Some(key) = &dialing.key else {
            return;
        };
        let hello = Hello { group: id, public: *key.public(), cookie: dialing.cookie };
        let Some(network_path) = dialing.network_paths.get(dialing.next_path).copied() else {
            return;
        };
        dialing.next_path = (dialing.next_path + 1) % dialing.network_paths.len();
        self.queue(network_path, hello.encode().into());
    }

    /// Repeats the hello with the cookie of the responder. Anyone can forge such a packet, so the number of
    /// immediate hellos is limited.
    pub(super) fn take_cookie(
        &mut self,
        now: Time,
        network_path: NetworkPath,
        id: GroupId,
        packet: &[u8],
    ) -> Result<(), DropReason> {
        let cookie = handshake::decode_cookie(packet).ok_or(DropReason::Malformed)?;
        let Some(Slot::Dialing(dialing)) = self.table.slot(id) else {
            return Err(DropReason::UnknownGroup);
        };
        let next_path = dialing
            .network_paths
            .iter()
            .position(|known| *known == network_path)
            .ok_or(DropReason::Forged)?;
        if dialing.cookie == cookie {
            return Ok(());
        }
        dialing.cookie = cookie;
        // The next hello uses the path of the cookie.
        dialing.next_path = next_path;
        if dialing.cookies >= COOKIES_MAX {
            return Ok(());
        }
        dialing.cookies += 1;
        dialing.next = now;
        self.tick_dialing(now, id);
        Ok(())
    }

    /// Processes a reply with an unexpected key. It may come from another node of the segment that was
    /// faster, so the dial continues until several such replies.
    fn reject_wrong_peer(&mut self, id: GroupId, peer: PeerKey) -> Result<(), DropReason> {
        if let Some(Slot::Dialing(dialing)) = self.table.slot(id) {
            dialing.wrong_peers += 1;
            if dialing.wrong_peers >= WRONG_PEERS_MAX {
                self.table.vacate(id);
                self.outputs
                    .push_back(CircuitOutput::Failed { group: id, reason: DialFault::UnexpectedKey(peer) });
            }
        }
        Err(DropReason::HandshakeRejected)
    }

    pub(super) fn take_reply(
        &mut self,
        now: Time,
        network_path: NetworkPath,
        id: GroupId,
        packet: &[u8],
    ) -> Result<(), DropReason> {
        let Some(Slot::Dialing(dialing)) = self.table.slot(id) else {
            return Err(DropReason::UnknownGroup);
        };
        let path = dialing
            .network_paths
            .iter()
            .position(|known| *known == network_path)
            .ok_or(DropReason::Forged)?;
        let public = *dialing.key.as_ref().ok_or(DropReason::UnknownGroup)?.public();
        let hello = Hello { group: id, public, cookie: NO_COOKIE };
        if !handshake::is_reply_to(&hello, packet) {
            return Err(DropReason::Forged);
        }
        // The key is consumed in any case; the next hello uses another one.
        let key = dialing.key.take().ok_or(DropReason::UnknownGroup)?;
        let replied = handshake::take_reply(&hello, key, packet).ok_or(DropReason::Forged)?;
        let (peer, expected) = (replied.peer, dialing.expected);
        if peer == self.own {
            // A reflected hello of our own.
            return Err(DropReason::Forged);
        }
        if !expected.map_or_else(|| self.trust.covers(peer), |expected| expected == peer) {
            return self.reject_wrong_peer(id, peer);
        }
        let network_paths = std::mem::take(&mut dialing.network_paths);
        let Some((finish, secrets)) =
            handshake::finish(&self.identity, &replied.state, replied.group, path as u8)
        else {
            self.table.vacate(id);
            self.outputs.push_back(CircuitOutput::Failed { group: id, reason: DialFault::Timeout });
            return Err(DropReason::Forged);
        };
        self.queue(network_path, finish.clone().into());
        let mut group =
            Group::initiator(now, peer, replied.group, secrets, &network_paths, path, finish, &self.cards);
        group.is_announced = true;
        self.table.put(id, Slot::Established(Box::new(group)));
        self.outputs.push_back(CircuitOutput::Established { group: id, peer, is_initiator: true });
        self.collect_outputs(id);
        Ok(())
    }
}
