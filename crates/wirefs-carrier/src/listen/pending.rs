//! A connection between accept and the end of its handshake.

use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::AcceptError;
use crate::carrier::{Carrier, PeerInfo};
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

/// One of a bounded number of slots.
#[derive(Debug)]
pub(super) struct Slot(Arc<AtomicUsize>);

impl Slot {
    pub(super) fn take(count: &Arc<AtomicUsize>, max: usize) -> Option<Self> {
        let slot = Self(Arc::clone(count));
        (count.fetch_add(1, Ordering::Relaxed) < max).then_some(slot)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
