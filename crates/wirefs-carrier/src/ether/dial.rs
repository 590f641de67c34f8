//! The client's side of an ether carrier.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wirefs_circuit::{
    CardAddress as Address, CardId, DialFault, GroupId, NetworkPath, PathState, PeerKey as NodeKey,
};

use super::cards::EtherCards;
use super::lane::{Gone, Taken};
use super::owner::{Handle, Owner};
use super::place::{EtherPlace, Hardware};
use super::source::{self, EtherSource};
use super::{GREETING, HardwareAddress, REFUSAL};
use crate::carrier::{Carrier, PeerInfo};
use crate::dial::{Dial, DialError};
use crate::lost::CarrierLost;
use crate::path::PathStatus;
use crate::tls::{Identity, KnownHosts, PublicKey};

/// Dials a node over Ethernet: proves our identity, and that the peer is the one we know. The cards are opened once, so that
/// the right to do so can be given up afterwards.
#[derive(Debug)]
pub struct EtherDial {
    /// The peer, for people.
    peer: String,
    ways: Vec<NetworkPath>,
    /// The names of our cards.
    cards: Vec<String>,
    owner: Arc<Owner>,
    identity: Arc<Identity>,
    whom: Whom,
    timeout: Duration,
    /// The last group that came to stand.
    last: Mutex<Option<GroupId>>,
}

/// Who has to answer.
#[derive(Debug)]
enum Whom {
    /// Who answered under this name before; whoever answers first is remembered.
    Pinned { host: String, known_hosts: KnownHosts },
    /// Who has this key.
    Key(PublicKey),
}

/// What became of a dial.
enum Met {
    Joined(NodeKey),
    Gone(Gone),
}

impl EtherDial {
    /// Opens the cards; will dial as `identity`, giving the handshake `timeout`.
    ///
    /// # Errors
    /// The cards cannot be opened, or the address names no peer.
    pub fn open(
        place: EtherPlace,
        identity: Arc<Identity>,
        known_hosts: KnownHosts,
        timeout: Duration,
    ) -> Result<Self, DialError> {
        if place.remotes.is_empty() {
            return Err(DialError::NoPeer { address: place.to_string() });
        }
        let owner = Owner::open(&place.cards, &identity, false)?;
        let way = |index: usize| way(index, place.remote(index)?);
        Ok(Self {
            peer: place.to_string(),
            ways: (0..place.cards.len()).filter_map(way).collect(),
            cards: place.cards.clone(),
            owner,
            identity,
            whom: Whom::Pinned { host: place.peer_name(), known_hosts },
            timeout,
            last: Mutex::default(),
        })
    }

    /// Will dial who has this key, over cards that are open already.
    pub(super) fn expecting(
        cards: &EtherCards,
        ways: &[(usize, HardwareAddress)],
        key: PublicKey,
        timeout: Duration,
    ) -> Self {
        let first = ways.first().map(|(_, remote)| Hardware(*remote).to_string()).unwrap_or_default();
        Self {
            peer: format!("ether://{first}"),
            ways: ways.iter().filter_map(|(index, remote)| way(*index, *remote)).collect(),
            cards: cards.names.clone(),
            owner: Arc::clone(&cards.owner),
            identity: Arc::clone(&cards.identity),
            whom: Whom::Key(key),
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

    /// Joins the peer.
    fn join(&self, expected: Option<NodeKey>, deadline: Instant) -> Result<(Handle, NodeKey), DialError> {
        let engine = &self.owner.engine;
        let dialled = engine.with(|machine, now| machine.dial(now, &self.ways, expected));
        let group = dialled.map_err(|error| self.failed(io::ErrorKind::Other, error.to_string()))?;
        engine.nudge();
        let handle = Handle { owner: Arc::clone(&self.owner), group };
        let met = engine.wait(group, Some(deadline), |machine, _| {
            let lane = machine.lane(group)?;
            lane.gone.map(Met::Gone).or(lane.peer.map(Met::Joined))
        });
        match met {
            Some(Met::Joined(peer)) => Ok((handle, peer)),
            Some(Met::Gone(Gone::Failed(DialFault::UnexpectedKey(shown)))) => Err(self.changed(shown)?),
            Some(Met::Gone(Gone::Failed(DialFault::Timeout))) | None => {
                Err(self.failed(io::ErrorKind::TimedOut, "no wirefs server answers there"))
            }
            Some(Met::Gone(gone)) => {
                Err(self.failed(io::ErrorKind::ConnectionAborted, gone.carrier_lost().to_string()))
            }
        }
    }

    /// The key that the peer must have, where one is known.
    fn known(&self) -> Result<Option<PublicKey>, DialError> {
        match &self.whom {
            Whom::Pinned { host, known_hosts } => Ok(known_hosts.find(host)?.map(|known| known.key)),
            Whom::Key(key) => Ok(Some(*key)),
        }
    }

    /// Another key than the one that is known.
    fn changed(&self, shown: NodeKey) -> Result<DialError, DialError> {
        let stranger = || self.failed(io::ErrorKind::PermissionDenied, "another node answered");
        let Whom::Pinned { host, known_hosts } = &self.whom else { return Ok(stranger()) };
        let shown = PublicKey::from_raw(shown.0).fingerprint();
        Ok(match known_hosts.find(host)? {
            Some(known) => DialError::HostKeyChanged {
                host: host.clone(),
                known: known.key.fingerprint(),
                shown,
                file: known_hosts.path().to_owned(),
                line: known.line,
            },
            None => stranger(),
        })
    }

    /// Waits for the word of the server: whether our key is known there.
    fn accepted(&self, handle: &Handle, deadline: Instant) -> Result<VecDeque<bytes::Bytes>, DialError> {
        let mut pieces = VecDeque::new();
        let refused = || DialError::Refused { line: self.identity.line() };
        match source::take(handle, &mut pieces, Some(deadline)) {
            Some(Taken::Bytes) => {}
            // Who is not known here is told so. This one stops, or has no room.
            Some(Taken::Gone(CarrierLost::PeerClosed) | Taken::End) => return Err(self.closed()),
            Some(Taken::Gone(lost)) => {
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

/// From our card number `index` to one of the peer's.
fn way(index: usize, remote: HardwareAddress) -> Option<NetworkPath> {
    Some(NetworkPath { card: CardId(u8::try_from(index).ok()?), remote: Address(remote.0) })
}

impl Dial for EtherDial {
    fn dial(&self) -> Result<Carrier, DialError> {
        let deadline = Instant::now() + self.timeout;
        let known = self.known()?;
        let (handle, peer) = self.join(known.as_ref().map(|key| NodeKey(*key.raw())), deadline)?;
        let key = PublicKey::from_raw(peer.0);
        let mut info = PeerInfo { identity: Some(key), ..PeerInfo::plain("ether", self.peer.clone()) };
        if let (None, Whom::Pinned { host, known_hosts }) = (&known, &self.whom) {
            match known_hosts.pin(host, key)? {
                Some(known) if known.key != key => return Err(self.changed(peer)?),
                Some(_) => {}
                None => info.pinned_in = Some(known_hosts.path().to_owned()),
            }
        }
        let pieces = self.accepted(&handle, deadline)?;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle.group);
        Ok(handle.into_carrier(|handle| EtherSource::new(handle, pieces), info))
    }

    fn paths(&self) -> Vec<PathStatus> {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(group) = last else { return Vec::new() };
        let states = self.owner.engine.lock().node.paths(group);
        let path = |state: PathState| PathStatus {
            card: self.cards.get(usize::from(state.path.card.0)).cloned().unwrap_or_default(),
            remote: Hardware(HardwareAddress(state.path.remote.0)).to_string(),
            is_up: state.is_up,
            rate: state.rate,
            rtt: state.rtt,
            arrived_bytes: state.arrived_bytes,
            lost_bytes: state.lost_bytes,
        };
        states.into_iter().map(path).collect()
    }
}
