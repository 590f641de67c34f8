//! The server side of ether carriers.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};
use wirefs_circuit::{CircuitCounters, GroupId};

use super::address::{EtherAddress, MacAddress};
use super::cards::EtherCards;
use super::error::EtherError;
use super::handle::{ConnectionHandle, SharedNode};
use super::source::EtherSource;
use super::{GREETING, HardwareAddress, REFUSAL};
use crate::carrier::{Carrier, PeerInfo};
use crate::listen::AcceptError;
use crate::tls::{AuthorizedKeys, Identity, PublicKey};

/// Accepts groups that peers open.
#[derive(Debug)]
pub(crate) struct EtherListener {
    shared_node: Arc<SharedNode>,
    cards: EtherCards,
    authorized: PathBuf,
    /// Socket names that exclude a second server in this network namespace.
    _claims: Vec<OwnedFd>,
}

/// A peer that proved its key, to be accepted or refused.
#[derive(Debug)]
pub(crate) struct EtherArrival {
    handle: ConnectionHandle,
    peer: String,
    key: PublicKey,
    authorized: PathBuf,
}

/// Claims a card for one server: frames go to all sockets of their type, so two servers would both answer.
fn claim(card: &str) -> Result<OwnedFd, EtherError> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(io::Error::from)?;
    let name = format!("wirefs-ether-{card}");
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).map_err(io::Error::from)?;
    bind(&socket, &address).map_err(|errno| match errno {
        rustix::io::Errno::ADDRINUSE => EtherError::ReadOutcome { card: card.to_owned() },
        other => EtherError::Resources(other.into()),
    })?;
    Ok(socket)
}

impl EtherListener {
    pub(crate) fn bind(
        address: &EtherAddress,
        identity: &Arc<Identity>,
        authorized: &Path,
    ) -> Result<Self, EtherError> {
        let claims = address.cards.iter().map(|card| claim(card)).collect::<Result<_, _>>()?;
        let shared_node = SharedNode::open(&address.cards, identity, true)?;
        let (names, identity) = (address.cards.clone(), Arc::clone(identity));
        let cards = EtherCards { names, shared_node: Arc::clone(&shared_node), identity };
        Ok(Self { shared_node, cards, authorized: authorized.to_owned(), _claims: claims })
    }

    /// Returns the cards, for dialing.
    pub(crate) fn cards(&self) -> EtherCards {
        self.cards.clone()
    }

    /// Readable while peers wait to be accepted.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.shared_node.engine.accept_event.as_fd()
    }

    /// Returns the hardware addresses of the cards.
    pub(crate) fn hardware(&self) -> Vec<HardwareAddress> {
        self.cards.hardware()
    }

    /// Returns the node's counters.
    pub(crate) fn counters(&self) -> CircuitCounters {
        *self.shared_node.engine.lock().node.counters()
    }

    pub(crate) fn accept(&self) -> io::Result<EtherArrival> {
        self.shared_node.engine.accept_event.clear();
        let mut mux = self.shared_node.engine.lock();
        let group = mux.next_arrival().ok_or(io::ErrorKind::WouldBlock)?;
        if mux.has_arrivals() {
            self.shared_node.engine.accept_event.signal();
        }
        let peer = mux.node.live_paths(group).first().map(|(path, _)| HardwareAddress(path.remote.0));
        let key = mux.connection(group).and_then(|connection| connection.peer);
        drop(mux);
        let handle = ConnectionHandle { shared_node: Arc::clone(&self.shared_node), group };
        let peer = peer.map_or_else(|| "ether://".to_owned(), |peer| format!("ether://{}", MacAddress(peer)));
        let key = PublicKey::from_raw(key.ok_or(io::ErrorKind::ConnectionAborted)?.0);
        Ok(EtherArrival { handle, peer, key, authorized: self.authorized.clone() })
    }
}

impl EtherArrival {
    pub(crate) fn peer(&self) -> &str {
        &self.peer
    }

    /// Accepts the peer if its key is authorized, else sends a refusal.
    pub(crate) fn finish(self) -> Result<Carrier, AcceptError> {
        let Self { handle, peer, key, authorized } = self;
        // Read for each connection, so that a new key takes effect at once.
        let keys = AuthorizedKeys::read(&authorized);
        if keys.as_ref().is_ok_and(|keys| keys.admits(&key, &peer)) {
            let failed = |lost| AcceptError::Handshake { peer: peer.clone(), error: format!("{lost}") };
            send_greeting(&handle, handle.group, GREETING).map_err(failed)?;
            let info = PeerInfo { identity: Some(key), ..PeerInfo::plain("ether", peer) };
            return Ok(handle.into_carrier(|handle| EtherSource::new(handle, VecDeque::new()), info));
        }
        // Fails if the peer has closed; then no refusal is needed.
        let _sent = send_greeting(&handle, handle.group, REFUSAL);
        handle.close();
        Err(match keys {
            Ok(keys) => AcceptError::UnknownKey {
                is_listed: keys.contains(&key),
                line: key.line(&peer),
                peer,
                file: authorized,
                broken: keys.broken().iter().map(ToString::to_string).collect(),
            },
            Err(error) => AcceptError::Unusable { peer, line: key.line(""), error: error.to_string() },
        })
    }
}

fn send_greeting(
    handle: &ConnectionHandle,
    group: GroupId,
    word: &'static [u8],
) -> Result<(), crate::lost::CarrierLost> {
    handle.engine().with(|mux, _| mux.send_greeting(group, word))
}
