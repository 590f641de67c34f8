//! The server's side of ether carriers.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};
use wirefs_circuit::{CircuitCounters as Counters, GroupId};

use super::cards::EtherCards;
use super::error::EtherError;
use super::owner::{Handle, Owner};
use super::place::{EtherPlace, Hardware};
use super::source::EtherSource;
use super::{GREETING, HardwareAddress, REFUSAL};
use crate::carrier::{Carrier, PeerInfo};
use crate::listen::AcceptError;
use crate::tls::{AuthorizedKeys, Identity, PublicKey};

/// Takes groups that peers make.
#[derive(Debug)]
pub(crate) struct EtherListener {
    owner: Arc<Owner>,
    cards: EtherCards,
    authorized: PathBuf,
    /// Names that no second server in this network name space can have.
    _claims: Vec<OwnedFd>,
}

/// A peer that proved its key, and has to be accepted or refused.
#[derive(Debug)]
pub(crate) struct EtherArrival {
    handle: Handle,
    peer: String,
    key: PublicKey,
    authorized: PathBuf,
}

/// Claims a card for one server: frames go to all sockets of their type, so two would both answer.
fn claim(card: &str) -> Result<OwnedFd, EtherError> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(io::Error::from)?;
    let name = format!("wirefs-ether-{card}");
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).map_err(io::Error::from)?;
    bind(&socket, &address).map_err(|errno| match errno {
        rustix::io::Errno::ADDRINUSE => EtherError::Taken { card: card.to_owned() },
        other => EtherError::Resources(other.into()),
    })?;
    Ok(socket)
}

impl EtherListener {
    pub(crate) fn bind(
        place: &EtherPlace,
        identity: &Arc<Identity>,
        authorized: &Path,
    ) -> Result<Self, EtherError> {
        let claims = place.cards.iter().map(|card| claim(card)).collect::<Result<_, _>>()?;
        let owner = Owner::open(&place.cards, identity, true)?;
        let (names, identity) = (place.cards.clone(), Arc::clone(identity));
        let cards = EtherCards { names, owner: Arc::clone(&owner), identity };
        Ok(Self { owner, cards, authorized: authorized.to_owned(), _claims: claims })
    }

    /// The cards, to dial others over.
    pub(crate) fn cards(&self) -> EtherCards {
        self.cards.clone()
    }

    /// Readable while somebody waits to be accepted.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.owner.engine.door.as_fd()
    }

    /// The hardware addresses of the cards.
    pub(crate) fn hardware(&self) -> Vec<HardwareAddress> {
        self.cards.hardware()
    }

    /// What was refused and why, among others.
    pub(crate) fn counters(&self) -> Counters {
        *self.owner.engine.lock().node.counters()
    }

    pub(crate) fn accept(&self) -> io::Result<EtherArrival> {
        self.owner.engine.door.clear();
        let mut machine = self.owner.engine.lock();
        let group = machine.next_arrival().ok_or(io::ErrorKind::WouldBlock)?;
        if machine.has_arrivals() {
            self.owner.engine.door.ring();
        }
        let peer = machine.node.live_paths(group).first().map(|(way, _)| HardwareAddress(way.remote.0));
        let key = machine.lane(group).and_then(|lane| lane.peer);
        drop(machine);
        let handle = Handle { owner: Arc::clone(&self.owner), group };
        let peer = peer.map_or_else(|| "ether://".to_owned(), |peer| format!("ether://{}", Hardware(peer)));
        let key = PublicKey::from_raw(key.ok_or(io::ErrorKind::ConnectionAborted)?.0);
        Ok(EtherArrival { handle, peer, key, authorized: self.authorized.clone() })
    }
}

impl EtherArrival {
    pub(crate) fn peer(&self) -> &str {
        &self.peer
    }

    /// Accepts the peer if its key is known, else tells it so.
    pub(crate) fn finish(self) -> Result<Carrier, AcceptError> {
        let Self { handle, peer, key, authorized } = self;
        // Read at each connection, so that a key that was just added counts.
        let keys = AuthorizedKeys::read(&authorized);
        if keys.as_ref().is_ok_and(|keys| keys.contains(&key)) {
            let failed = |lost| AcceptError::Handshake { peer: peer.clone(), error: format!("{lost}") };
            greet(&handle, handle.group, GREETING).map_err(failed)?;
            let info = PeerInfo { identity: Some(key), ..PeerInfo::plain("ether", peer) };
            return Ok(handle.into_carrier(|handle| EtherSource::new(handle, VecDeque::new()), info));
        }
        // One that is gone need not be told.
        let _told = greet(&handle, handle.group, REFUSAL);
        handle.close();
        Err(match keys {
            Ok(keys) => AcceptError::UnknownKey {
                line: key.line(&peer),
                peer,
                file: authorized,
                broken: keys.broken().iter().map(ToString::to_string).collect(),
            },
            Err(error) => AcceptError::Unusable { peer, line: key.line(""), error: error.to_string() },
        })
    }
}

fn greet(handle: &Handle, group: GroupId, word: &'static [u8]) -> Result<(), crate::lost::CarrierLost> {
    handle.engine().with(|machine, _| machine.greet(group, word))
}
