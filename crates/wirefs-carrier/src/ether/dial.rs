//! The client's side of an ether carrier.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wirefs_circuit::{Address, CardId, DialFault, NodeKey, Way};

use super::lane::{Gone, Taken};
use super::owner::{Handle, Owner};
use super::place::EtherPlace;
use super::source::{self, EtherSource};
use super::{GREETING, REFUSAL};
use crate::carrier::{Carrier, PeerInfo};
use crate::dial::{Dial, DialError};
use crate::lost::CarrierLost;
use crate::tls::{Identity, KnownHosts, PublicKey};

/// Dials a node over Ethernet: proves our identity, and that the peer is the one we know. The cards are opened once, so that
/// the right to do so can be given up afterwards.
#[derive(Debug)]
pub struct EtherDial {
    place: EtherPlace,
    owner: Arc<Owner>,
    identity: Arc<Identity>,
    known_hosts: KnownHosts,
    timeout: Duration,
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
        Ok(Self { place, owner, identity, known_hosts, timeout })
    }

    fn ways(&self) -> Vec<Way> {
        let way = |index: usize| {
            let remote = Address(self.place.remote(index)?.0);
            Some(Way { card: CardId(u8::try_from(index).ok()?), remote })
        };
        (0..self.place.cards.len()).filter_map(way).collect()
    }

    fn failed(&self, kind: io::ErrorKind, what: impl Into<String>) -> DialError {
        DialError::Connect { address: self.place.to_string(), error: io::Error::new(kind, what.into()) }
    }

    fn closed(&self) -> DialError {
        self.failed(io::ErrorKind::ConnectionAborted, "the server closed the circuit before it accepted us")
    }

    /// Joins the peer.
    fn join(&self, expected: Option<NodeKey>, deadline: Instant) -> Result<(Handle, NodeKey), DialError> {
        let engine = &self.owner.engine;
        let dialled = engine.with(|machine, now| machine.dial(now, &self.ways(), expected));
        let group = dialled.map_err(|error| self.failed(io::ErrorKind::Other, error.to_string()))?;
        engine.nudge();
        let handle = Handle { owner: Arc::clone(&self.owner), group };
        let met = engine.wait(group, Some(deadline), |machine, _| {
            let lane = machine.lane(group)?;
            lane.gone.map(Met::Gone).or(lane.peer.map(Met::Joined))
        });
        match met {
            Some(Met::Joined(peer)) => Ok((handle, peer)),
            Some(Met::Gone(Gone::Failed(DialFault::Stranger(shown)))) => Err(self.changed(shown)?),
            Some(Met::Gone(Gone::Failed(DialFault::Silent))) | None => {
                Err(self.failed(io::ErrorKind::TimedOut, "no wirefs server answers there"))
            }
            Some(Met::Gone(gone)) => {
                Err(self.failed(io::ErrorKind::ConnectionAborted, gone.carrier_lost().to_string()))
            }
        }
    }

    /// Another key than the pinned one.
    fn changed(&self, shown: NodeKey) -> Result<DialError, DialError> {
        let host = self.place.peer_name();
        let shown = PublicKey::from_raw(shown.0).fingerprint();
        let known = self.known_hosts.find(&host)?;
        Ok(match known {
            Some(known) => DialError::HostKeyChanged {
                host,
                known: known.key.fingerprint(),
                shown,
                file: self.known_hosts.path().to_owned(),
                line: known.line,
            },
            None => self.failed(io::ErrorKind::PermissionDenied, "another node answered"),
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
            None => return Err(DialError::Silent { address: self.place.to_string() }),
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
                address: self.place.to_string(),
                error: "its first word is none of ours".into(),
            }),
        }
    }
}

impl Dial for EtherDial {
    fn dial(&self) -> Result<Carrier, DialError> {
        let deadline = Instant::now() + self.timeout;
        let host = self.place.peer_name();
        let known = self.known_hosts.find(&host)?;
        let expected = known.as_ref().map(|known| NodeKey(*known.key.raw()));
        let (handle, peer) = self.join(expected, deadline)?;
        let key = PublicKey::from_raw(peer.0);
        let mut info = PeerInfo { identity: Some(key), ..PeerInfo::plain("ether", self.place.to_string()) };
        if known.is_none() {
            match self.known_hosts.pin(&host, key)? {
                Some(known) if known.key != key => return Err(self.changed(peer)?),
                Some(_) => {}
                None => info.pinned_in = Some(self.known_hosts.path().to_owned()),
            }
        }
        let pieces = self.accepted(&handle, deadline)?;
        Ok(handle.into_carrier(|handle| EtherSource::new(handle, pieces), info))
    }
}
