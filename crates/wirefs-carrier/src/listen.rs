//! Waiting for peers.

mod error;
mod pending;
mod socket_file;

use std::io;
use std::net::{TcpListener, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::event::PollFlags;

pub use error::{AcceptError, ListenError};
pub use pending::Pending;
use pending::{Arrival, Slot};
use socket_file::SocketFile;

use crate::address::{Address, HostPort};
use crate::congestion;
use crate::ether::{Counters, EtherCards, EtherListener, EtherPlace, HardwareAddress};
use crate::limits::PENDING_MAX;
use crate::stream::{Wake, wait};
use crate::tls::{Identity, TlsAcceptor};

/// How long accepting rests when the process is out of descriptors.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// What a listener needs beside its address.
#[derive(Clone, Debug, Default)]
pub struct ListenOptions {
    /// The server's own key; needed for `tls` and `ether` addresses.
    pub identity: Option<Arc<Identity>>,
    /// The file of keys that may connect; needed for `tls` and `ether` addresses. Read anew at each connection.
    pub authorized_keys: Option<PathBuf>,
}

/// A place where peers arrive. Dropping it stops listening and removes a socket file.
#[derive(Debug)]
pub struct Listener {
    socket: ListenSocket,
    address: Address,
    wake: Arc<Wake>,
    pending: Arc<AtomicUsize>,
    turned_away: AtomicU64,
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

/// Ends a [`Listener`] from any thread.
#[derive(Clone, Debug)]
pub struct ListenerCloser {
    wake: Arc<Wake>,
}

impl ListenerCloser {
    /// Makes `accept` return [`AcceptError::Closed`], now and from now on.
    pub fn close(&self) {
        self.wake.set();
    }
}

impl Listener {
    /// Starts to listen.
    ///
    /// # Errors
    /// The address is in use, not ours, or of a kind that cannot be listened on; the error says what to do.
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
            pending: Arc::new(AtomicUsize::new(0)),
            turned_away: AtomicU64::new(0),
            warnings,
            _file: socket_file,
        })
    }

    /// The address, with the port that the system chose where 0 was asked for.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// What the person who starts the server should know, such as that no key is authorized yet.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Connections closed at once because [`PENDING_MAX`] others had not finished their handshake.
    pub fn turned_away(&self) -> u64 {
        self.turned_away.load(Ordering::Relaxed)
    }

    /// The hardware addresses of the cards of an `ether` listener; none of others.
    pub fn hardware(&self) -> Vec<HardwareAddress> {
        match &self.socket {
            ListenSocket::Ether(listener) => listener.hardware(),
            ListenSocket::Unix(_) | ListenSocket::TcpPlain(_) | ListenSocket::Tls(..) => Vec::new(),
        }
    }

    /// The cards of an `ether` listener, to dial others over: they see one node, whichever side dials.
    pub fn ether_cards(&self) -> Option<EtherCards> {
        match &self.socket {
            ListenSocket::Ether(listener) => Some(listener.cards()),
            ListenSocket::Unix(_) | ListenSocket::TcpPlain(_) | ListenSocket::Tls(..) => None,
        }
    }

    /// What came over the cards of an `ether` listener and was taken or refused.
    pub fn counters(&self) -> Option<Counters> {
        match &self.socket {
            ListenSocket::Ether(listener) => Some(listener.counters()),
            ListenSocket::Unix(_) | ListenSocket::TcpPlain(_) | ListenSocket::Tls(..) => None,
        }
    }

    /// A handle that ends this listener from another thread.
    pub fn closer(&self) -> ListenerCloser {
        ListenerCloser { wake: Arc::clone(&self.wake) }
    }

    /// Blocks for the next connection. Its handshake is still to be done, by [`Pending::finish`] on a thread of its own,
    /// so that a slow peer delays nobody.
    ///
    /// # Errors
    /// [`AcceptError::Closed`] after a close; others when the socket itself is broken.
    pub fn accept(&self) -> Result<Pending, AcceptError> {
        loop {
            let fd = self.socket.fd();
            wait(fd, PollFlags::IN, Some(&self.wake), None).map_err(AcceptError::Io)?;
            if self.is_closed() {
                return Err(AcceptError::Closed);
            }
            match self.socket.accept(&self.address) {
                Ok(arrival) => match Slot::take(&self.pending, PENDING_MAX) {
                    Some(slot) => return Ok(Pending::new(arrival, slot)),
                    None => {
                        self.turned_away.fetch_add(1, Ordering::Relaxed);
                    }
                },
                Err(error) if is_exhausted(&error) => {
                    // Polling would return at once for as long as the peer waits: look only at the closer for a while.
                    wait(fd, PollFlags::empty(), Some(&self.wake), Some(EXHAUSTED_PAUSE))
                        .map_err(AcceptError::Io)?;
                }
                Err(error) if is_fatal(&error) => return Err(AcceptError::Io(error)),
                // The one connection is gone; the listener is not.
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
            Self::TcpPlain(listener) => listener.accept().map(|(tcp, peer)| Arrival::TcpPlain(tcp, peer)),
            Self::Tls(listener, acceptor) => {
                listener.accept().map(|(tcp, peer)| Arrival::Tls(tcp, peer, Arc::clone(acceptor)))
            }
            Self::Ether(listener) => listener.accept().map(Arrival::Ether),
        }
    }
}

fn bind_ether(
    place: &EtherPlace,
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
    let listener = TcpListener::bind(addresses.as_slice()).map_err(fail)?;
    // What is accepted has it from here.
    congestion::begin(&listener);
    // A peer that goes away between poll and accept must not block the loop.
    listener.set_nonblocking(true).map_err(fail)?;
    Ok(listener)
}

fn bound(listener: &TcpListener, host: &HostPort) -> HostPort {
    let port = listener.local_addr().map_or(host.port, |address| address.port());
    HostPort { host: host.host.clone(), port }
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
