//! A connection between accept and the end of its handshake.

use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::AcceptError;
use super::pending_table::Slot;
use crate::carrier::{Carrier, PeerInfo, host_of};
use crate::ether::EtherArrival;
use crate::tls::TlsAcceptor;
use crate::{socket, stream};

/// An accepted connection that is not authenticated yet.
#[derive(Debug)]
pub struct PendingConnection {
    arrival: Arrival,
    /// Freed when the handshake ends, in any way.
    slot: Slot,
}

#[derive(Debug)]
pub(super) enum Arrival {
    Unix(UnixStream, String),
    TcpPlain(TcpStream, SocketAddr),
    Tls(TcpStream, SocketAddr, Arc<TlsAcceptor>),
    Ether(EtherArrival),
}

impl Arrival {
    /// Returns the host that the connection counts for.
    pub(super) fn host(&self) -> String {
        match self {
            Self::Unix(_, address) => address.clone(),
            Self::TcpPlain(_, peer) | Self::Tls(_, peer, _) => host_of(*peer),
            Self::Ether(arrival) => arrival.peer().to_owned(),
        }
    }

    /// Returns the socket of a peer that has yet to prove its key.
    pub(super) fn unproved(&self) -> Option<&TcpStream> {
        match self {
            Self::Tls(tcp, ..) => Some(tcp),
            Self::Unix(..) | Self::TcpPlain(..) | Self::Ether(_) => None,
        }
    }
}

impl PendingConnection {
    pub(super) fn new(arrival: Arrival, slot: Slot) -> Self {
        Self { arrival, slot }
    }

    /// Returns the peer's address.
    pub fn peer(&self) -> String {
        match &self.arrival {
            Arrival::Unix(_, address) => address.clone(),
            Arrival::TcpPlain(_, peer) | Arrival::Tls(_, peer, _) => peer.to_string(),
            Arrival::Ether(arrival) => arrival.peer().to_owned(),
        }
    }

    /// Finishes the handshake, within `timeout`.
    ///
    /// # Errors
    /// Fails if the peer is silent, unauthorized, or speaks another protocol. The peer gets the reason as a TLS alert,
    /// if possible.
    pub fn finish(self, timeout: Duration) -> Result<Carrier, AcceptError> {
        let Self { arrival, slot } = self;
        let carrier = match arrival {
            Arrival::Unix(unix, address) => {
                Ok(stream::over_socket(unix.into(), PeerInfo::plain("unix", address)))
            }
            Arrival::TcpPlain(tcp, peer) => {
                socket::tune(&tcp).map_err(AcceptError::Io)?;
                Ok(stream::over_socket(tcp.into(), PeerInfo::plain("tcp+plain", peer.to_string())))
            }
            Arrival::Tls(tcp, peer, acceptor) => {
                socket::tune(&tcp).map_err(AcceptError::Io)?;
                acceptor.accept(tcp, peer.to_string(), Instant::now() + timeout)
            }
            // Its key is already proved.
            Arrival::Ether(arrival) => arrival.finish(),
        };
        drop(slot);
        carrier
    }
}
