//! Listening for peers.

mod error;
mod pending;
mod pending_table;
mod socket_file;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::PollFlags;

pub use error::{AcceptError, ListenError};
use pending::Arrival;
pub use pending::PendingConnection;
use pending_table::PendingTable;
use socket_file::SocketFile;

use crate::address::{Address, HostPort};
use crate::congestion;
use crate::ether::{CircuitCounters, EtherAddress, EtherCards, EtherListener, HardwareAddress};
use crate::limits::PENDING_MAX;
use crate::stream::{Wake, wait};
use crate::tls::{Identity, TlsAcceptor};

/// The pause of `accept` when the process is out of file descriptors.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// Options of a listener.
#[derive(Clone, Debug, Default)]
pub struct ListenOptions {
    /// The server's key; required for `tls` and `ether` addresses.
    pub identity: Option<Arc<Identity>>,
    /// The file of keys that may connect; required for `tls` and `ether` addresses. Read again for each connection.
    pub authorized_keys: Option<PathBuf>,
}

/// Accepts connections. Dropping it stops listening and removes a socket file.
#[derive(Debug)]
pub struct Listener {
    socket: ListenSocket,
    address: Address,
    wake: Arc<Wake>,
    pending: Arc<PendingTable>,
    warnings: Vec<String>,
    /// Removed with the listener.
    _file: Option<SocketFile>,
}

#[derive(Debug)]
enum ListenSocket {
    Unix(UnixListener),
    TcpPlain(TcpListener),
    Tls(TcpListener, Arc<TlsAcceptor>),
    Ether(EtherListener),
}

/// Closes a [`Listener`] from any thread.
#[derive(Clone, Debug)]
pub struct ListenerCloser {
    wake: Arc<Wake>,
}

impl ListenerCloser {
    /// Makes `accept` return [`AcceptError::Closed`], now and later.
    pub fn close(&self) {
        self.wake.set();
    }
}

impl Listener {
    /// Starts to listen.
    ///
    /// # Errors
    /// Fails if the address is in use, not ours, or of a kind that cannot be listened on; the error names the next
    /// step.
    pub fn bind(address: &Address, options: &ListenOptions) -> Result<Self, ListenError> {
        let mut warnings = Vec::new();
        let mut socket_file = None;
        let (socket, address) = match address {
            Address::Unix(path) => {
                let (listener, file) = socket_file::bind(path)?;
                socket_file = Some(file);
                (ListenSocket::Unix(listener), address.clone())
            }
            Address::TcpPlain(host) => {
                let listener = bind_tcp(host, address)?;
                let host = bound(&listener, host);
                (ListenSocket::TcpPlain(listener), Address::TcpPlain(host))
            }
            Address::Tls(host) => {
                let (Some(identity), Some(authorized)) = (&options.identity, &options.authorized_keys) else {
                    return Err(ListenError::NoIdentity { address: address.to_string() });
                };
                let acceptor = TlsAcceptor::new(identity, authorized)?;
                warnings = acceptor.warnings();
                let listener = bind_tcp(host, address)?;
                let host = bound(&listener, host);
                (ListenSocket::Tls(listener, Arc::new(acceptor)), Address::Tls(host))
            }
            Address::Ether(place) => {
                let (listener, found) = bind_ether(place, address, options)?;
                warnings = found;
                (ListenSocket::Ether(listener), address.clone())
            }
            Address::Ssh(login) => return Err(ListenError::NotListenable { address: login.to_string() }),
        };
        Ok(Self {
            socket,
            address,
            wake: Arc::new(Wake::new().map_err(ListenError::Resources)?),
            pending: PendingTable::new(PENDING_MAX),
            warnings,
            _file: socket_file,
        })
    }

    /// Returns the address, with the port that the system chose if the requested port was 0.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the address of the socket, if this is a listener of TCP.
    pub fn socket_address(&self) -> Option<SocketAddr> {
        match &self.socket {
            ListenSocket::TcpPlain(listener) | ListenSocket::Tls(listener, _) => listener.local_addr().ok(),
            ListenSocket::Unix(_) | ListenSocket::Ether(_) => None,
        }
    }

    /// Returns warnings for the administrator, such as that no key is authorized yet.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the connections that were closed before their handshake had ended, to make room for others.
    pub fn evicted(&self) -> u64 {
        self.pending.evicted()
    }

    /// Returns the hardware addresses of an `ether` listener's cards; empty for others.
    pub fn hardware(&self) -> Vec<HardwareAddress> {
        match &self.socket {
            ListenSocket::Ether(listener) => listener.hardware(),
            ListenSocket::Unix(_) | ListenSocket::TcpPlain(_) | ListenSocket::Tls(..) => Vec::new(),
        }
    }

    /// Returns the cards of an `ether` listener, for dialing: peers see one node, whichever side dials.
    pub fn ether_cards(&self) -> Option<EtherCards> {
        match &self.socket {
            ListenSocket::Ether(listener) => Some(listener.cards()),
            ListenSocket::Unix(_) | ListenSocket::TcpPlain(_) | ListenSocket::Tls(..) => None,
        }
    }

    /// Returns the counters of an `ether` listener.
    pub fn counters(&self) -> Option<CircuitCounters> {
        match &self.socket {
            ListenSocket::Ether(listener) => Some(listener.counters()),
            ListenSocket::Unix(_) | ListenSocket::TcpPlain(_) | ListenSocket::Tls(..) => None,
        }
    }

    /// Returns a handle that closes this listener from another thread.
    pub fn closer(&self) -> ListenerCloser {
        ListenerCloser { wake: Arc::clone(&self.wake) }
    }

    /// Blocks for the next connection. [`PendingConnection::finish`] does its handshake, on a thread of its own, so
    /// that a slow peer delays no other.
    ///
    /// # Errors
    /// [`AcceptError::Closed`] after a close; other errors if the socket is broken.
    pub fn accept(&self) -> Result<PendingConnection, AcceptError> {
        loop {
            let fd = self.socket.fd();
            wait(fd, PollFlags::IN, Some(&self.wake), None).map_err(AcceptError::Io)?;
            if self.is_closed() {
                return Err(AcceptError::Closed);
            }
            match self.socket.accept(&self.address) {
                Ok(arrival) => {
                    let slot = self.pending.enter(arrival.host(), arrival.unproved());
                    return Ok(PendingConnection::new(arrival, slot));
                }
                Err(error) if is_exhausted(&error) => {
                    // Polling the socket would return at once while the peer waits, so wait only for the closer for a
                    // while.
                    wait(fd, PollFlags::empty(), Some(&self.wake), Some(EXHAUSTED_PAUSE))
                        .map_err(AcceptError::Io)?;
                }
                Err(error) if is_fatal(&error) => return Err(AcceptError::Io(error)),
                // Only this connection failed, not the listener.
                Err(_) => {}
            }
        }
    }

    fn is_closed(&self) -> bool {
        self.wake.is_set()
    }
}

impl ListenSocket {
    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener) => listener.as_fd(),
            Self::TcpPlain(listener) | Self::Tls(listener, _) => listener.as_fd(),
            Self::Ether(listener) => listener.fd(),
        }
    }

    fn accept(&self, address: &Address) -> io::Result<Arrival> {
        match self {
            Self::Unix(listener) => Ok(Arrival::Unix(listener.accept()?.0, address.to_string())),
            Self::TcpPlain(listener) => {
                listener.accept().map(|(tcp, peer)| Arrival::TcpPlain(tcp, canonical(peer)))
            }
            Self::Tls(listener, acceptor) => {
                listener.accept().map(|(tcp, peer)| Arrival::Tls(tcp, canonical(peer), Arc::clone(acceptor)))
            }
            Self::Ether(listener) => listener.accept().map(Arrival::Ether),
        }
    }
}

fn bind_ether(
    place: &EtherAddress,
    address: &Address,
    options: &ListenOptions,
) -> Result<(EtherListener, Vec<String>), ListenError> {
    if !place.remotes.is_empty() {
        return Err(ListenError::NamesPeer { address: address.to_string() });
    }
    let (Some(identity), Some(authorized)) = (&options.identity, &options.authorized_keys) else {
        return Err(ListenError::NoIdentity { address: address.to_string() });
    };
    let warnings = TlsAcceptor::new(identity, authorized)?.warnings();
    Ok((EtherListener::bind(place, identity, authorized)?, warnings))
}

fn bind_tcp(host: &HostPort, address: &Address) -> Result<TcpListener, ListenError> {
    let fail = |error| ListenError::tcp(address, host, error);
    let addresses: Vec<_> = (host.host.as_str(), host.port).to_socket_addrs().map_err(fail)?.collect();
    let listener = match TcpListener::bind(addresses.as_slice()) {
        // Without IPv6 all addresses are those of IPv4.
        Err(error) if host.host == "::" && is_without_ipv6(&error) => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, host.port))
        }
        bound => bound,
    };
    let listener = listener.map_err(fail)?;
    // Accepted sockets inherit the setting.
    congestion::prepare(&listener);
    // A peer that disconnects between poll and accept must not block the loop.
    listener.set_nonblocking(true).map_err(fail)?;
    Ok(listener)
}

fn bound(listener: &TcpListener, host: &HostPort) -> HostPort {
    let port = listener.local_addr().map_or(host.port, |address| address.port());
    HostPort { host: host.host.clone(), port }
}

fn is_without_ipv6(error: &io::Error) -> bool {
    [libc::EAFNOSUPPORT, libc::EADDRNOTAVAIL].into_iter().any(|code| error.raw_os_error() == Some(code))
}

/// Returns an IPv4 peer of an IPv6 socket by its IPv4 address.
fn canonical(peer: SocketAddr) -> SocketAddr {
    SocketAddr::new(peer.ip().to_canonical(), peer.port())
}

fn is_exhausted(error: &io::Error) -> bool {
    [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM]
        .into_iter()
        .any(|code| error.raw_os_error() == Some(code))
}

fn is_fatal(error: &io::Error) -> bool {
    [libc::EBADF, libc::EINVAL, libc::ENOTSOCK, libc::EOPNOTSUPP]
        .into_iter()
        .any(|code| error.raw_os_error() == Some(code))
}
