//! The client side of an ether carrier.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wirefs_circuit::{CardAddress, CardId, DialFault, GroupId, NetworkPath, PathState, PeerKey};

use super::address::{EtherAddress, MacAddress};
use super::cards::EtherCards;
use super::connection::{ConnectionEnd, ReadOutcome};
use super::handle::{ConnectionHandle, SharedNode};
use super::source::{self, EtherSource};
use super::{GREETING, HardwareAddress, REFUSAL};
use crate::carrier::{Carrier, PeerInfo};
use crate::dial::{Dial, DialError};
use crate::lost::CarrierLost;
use crate::path::PathStatus;
use crate::tls::{Identity, KnownHosts, PublicKey};

/// Dials a node over Ethernet: proves our identity, and verifies the peer's key. The cards are opened once, so that
/// CAP_NET_RAW can be dropped afterwards.
#[derive(Debug)]
pub struct EtherDial {
    /// The peer's name, for messages.
    peer: String,
    paths: Vec<NetworkPath>,
    /// The names of our cards.
    cards: Vec<String>,
    shared_node: Arc<SharedNode>,
    identity: Arc<Identity>,
    expected_peer: ExpectedPeer,
    timeout: Duration,
    /// The last group that was established.
    last: Mutex<Option<GroupId>>,
}

/// The expected peer.
#[derive(Debug)]
enum ExpectedPeer {
    /// The key pinned for this host; the first one is pinned.
    Pinned { host: String, known_hosts: KnownHosts },
    /// The node with this key.
    Key(PublicKey),
}

/// The result of a handshake.
enum JoinResult {
    Joined(PeerKey),
    Ended(ConnectionEnd),
}

impl EtherDial {
    /// Opens the cards. The returned dialer authenticates as `identity`, and gives up a handshake after `timeout`.
    ///
    /// # Errors
    /// Fails if a card cannot be opened, or the address names no peer.
    pub fn open(
        address: EtherAddress,
        identity: Arc<Identity>,
        known_hosts: KnownHosts,
        timeout: Duration,
    ) -> Result<Self, DialError> {
        if address.remotes.is_empty() {
            return Err(DialError::NoPeer { address: address.to_string() });
        }
        let shared_node = SharedNode::open(&address.cards, &identity, false)?;
        let path = |index: usize| path(index, address.remote(index)?);
        Ok(Self {
            peer: address.to_string(),
            paths: (0..address.cards.len()).filter_map(path).collect(),
            cards: address.cards.clone(),
            shared_node,
            identity,
            expected_peer: ExpectedPeer::Pinned { host: address.peer_name(), known_hosts },
            timeout,
            last: Mutex::default(),
        })
    }

    /// Returns a dialer of the node with this key, over open cards.
    pub(super) fn expecting(
        cards: &EtherCards,
        paths: &[(usize, HardwareAddress)],
        key: PublicKey,
        timeout: Duration,
    ) -> Self {
        let first = paths.first().map(|(_, remote)| MacAddress(*remote).to_string()).unwrap_or_default();
        Self {
            peer: format!("ether://{first}"),
            paths: paths.iter().filter_map(|(index, remote)| path(*index, *remote)).collect(),
            cards: cards.names.clone(),
            shared_node: Arc::clone(&cards.shared_node),
            identity: Arc::clone(&cards.identity),
            expected_peer: ExpectedPeer::Key(key),
            timeout,
            last: Mutex::default(),
        }
    }

    fn failed(&self, kind: io::ErrorKind, what: impl Into<String>) -> DialError {
        DialError::Connect { address: self.peer.clone(), error: io::Error::new(kind, what.into()) }
    }

    fn closed(&self) -> DialError {
        self.failed(io::ErrorKind::ConnectionAborted, "the server closed the circuit before it accepted us")
    }

    /// Does the handshake with the peer.
    fn join(
        &self,
        expected: Option<PeerKey>,
        deadline: Instant,
    ) -> Result<(ConnectionHandle, PeerKey), DialError> {
        let engine = &self.shared_node.engine;
        let dialed = engine.with(|mux, now| mux.dial(now, &self.paths, expected));
        let group = dialed.map_err(|error| self.failed(io::ErrorKind::Other, error.to_string()))?;
        engine.wake_leader();
        let handle = ConnectionHandle { shared_node: Arc::clone(&self.shared_node), group };
        let result = engine.wait(group, Some(deadline), |mux, _| {
            let connection = mux.connection(group)?;
            connection.end.map(JoinResult::Ended).or(connection.peer.map(JoinResult::Joined))
        });
        match result {
            Some(JoinResult::Joined(peer)) => Ok((handle, peer)),
            Some(JoinResult::Ended(ConnectionEnd::Failed(DialFault::UnexpectedKey(shown)))) => {
                Err(self.changed(shown)?)
            }
            Some(JoinResult::Ended(ConnectionEnd::Failed(DialFault::Timeout))) | None => {
                Err(self.failed(io::ErrorKind::TimedOut, "no wirefs server answers there"))
            }
            Some(JoinResult::Ended(end)) => {
                Err(self.failed(io::ErrorKind::ConnectionAborted, end.carrier_lost().to_string()))
            }
        }
    }

    /// Returns the key that the peer must have, if one is known.
    fn expected_key(&self) -> Result<Option<PublicKey>, DialError> {
        match &self.expected_peer {
            ExpectedPeer::Pinned { host, known_hosts } => Ok(known_hosts.find(host)?.map(|known| known.key)),
            ExpectedPeer::Key(key) => Ok(Some(*key)),
        }
    }

    /// Returns the error for a key other than the known one.
    fn changed(&self, shown: PeerKey) -> Result<DialError, DialError> {
        let unknown = || self.failed(io::ErrorKind::PermissionDenied, "another node answered");
        let ExpectedPeer::Pinned { host, known_hosts } = &self.expected_peer else { return Ok(unknown()) };
        let shown = PublicKey::from_raw(shown.0).fingerprint();
        Ok(match known_hosts.find(host)? {
            Some(known) => DialError::HostKeyChanged {
                host: host.clone(),
                known: known.key.fingerprint(),
                shown,
                file: known_hosts.path().to_owned(),
                line: known.line,
            },
            None => unknown(),
        })
    }

    /// Waits until the server accepts or refuses our key.
    fn await_acceptance(
        &self,
        handle: &ConnectionHandle,
        deadline: Instant,
    ) -> Result<VecDeque<bytes::Bytes>, DialError> {
        let mut pieces = VecDeque::new();
        let refused = || DialError::Refused { line: self.identity.line() };
        match source::take(handle, &mut pieces, Some(deadline)) {
            Some(ReadOutcome::Bytes) => {}
            // A refused client gets a refusal. A close without one means that the server ends, or has no capacity.
            Some(ReadOutcome::Lost(CarrierLost::PeerClosed) | ReadOutcome::End) => return Err(self.closed()),
            Some(ReadOutcome::Lost(lost)) => {
                return Err(self.failed(io::ErrorKind::ConnectionAborted, lost.to_string()));
            }
            None => return Err(DialError::Silent { address: self.peer.clone() }),
        }
        let Some(first) = pieces.front_mut() else {
            return Err(self.closed());
        };
        let word = first.split_to(first.len().min(1));
        if first.is_empty() {
            pieces.pop_front();
        }
        match &*word {
            GREETING => Ok(pieces),
            REFUSAL => Err(refused()),
            _ => Err(DialError::Handshake {
                address: self.peer.clone(),
                error: "its first word is none of ours".into(),
            }),
        }
    }
}

/// Returns the path from our card number `index` to a card of the peer.
fn path(index: usize, remote: HardwareAddress) -> Option<NetworkPath> {
    Some(NetworkPath { card: CardId(u8::try_from(index).ok()?), remote: CardAddress(remote.0) })
}

impl Dial for EtherDial {
    fn dial(&self) -> Result<Carrier, DialError> {
        let deadline = Instant::now() + self.timeout;
        let expected_key = self.expected_key()?;
        let (handle, peer) = self.join(expected_key.as_ref().map(|key| PeerKey(*key.raw())), deadline)?;
        let key = PublicKey::from_raw(peer.0);
        let mut info = PeerInfo { identity: Some(key), ..PeerInfo::plain("ether", self.peer.clone()) };
        if let (None, ExpectedPeer::Pinned { host, known_hosts }) = (&expected_key, &self.expected_peer) {
            match known_hosts.pin(host, key)? {
                Some(expected_key) if expected_key.key != key => return Err(self.changed(peer)?),
                Some(_) => {}
                None => info.pinned_in = Some(known_hosts.path().to_owned()),
            }
        }
        let pieces = self.await_acceptance(&handle, deadline)?;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle.group);
        Ok(handle.into_carrier(|handle| EtherSource::new(handle, pieces), info))
    }

    fn paths(&self) -> Vec<PathStatus> {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(group) = last else { return Vec::new() };
        let states = self.shared_node.engine.lock().node.paths(group);
        let path = |state: PathState| PathStatus {
            card: self.cards.get(usize::from(state.path.card.0)).cloned().unwrap_or_default(),
            remote: MacAddress(HardwareAddress(state.path.remote.0)).to_string(),
            is_up: state.is_up,
            rate: state.rate,
            rtt: state.rtt,
            arrived_bytes: state.arrived_bytes,
            lost_bytes: state.lost_bytes,
        };
        states.into_iter().map(path).collect()
    }
}
