//! Errors of listening and handshakes, as messages for users.

use std::io;
use std::path::PathBuf;

use crate::address::{Address, HostPort};
use crate::ether::EtherError;
use crate::tls::{AuthorizedError, IdentityError};

/// Listening could not start. The text of each variant names the next step.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another program uses the port or the socket.
    #[error("{address} is in use by another program; stop it, or choose another address with --listen")]
    Busy {
        /// The address.
        address: String,
    },
    /// The port is below 1024, or the directory of the socket is not writable.
    #[error(
        "not allowed to listen on {address}; choose a port above 1023, or a directory of yours for a socket"
    )]
    Forbidden {
        /// The address.
        address: String,
    },
    /// This machine does not have that address.
    #[error("{host} is not an address of this machine; 0.0.0.0 or [::] stands for all of them")]
    NotOurs {
        /// The requested host.
        host: String,
    },
    /// The path exists and is not a socket.
    #[error("{} exists and is not a socket; choose another path, or remove it", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The system limits socket paths to 107 bytes.
    #[error("the socket path {} is longer than 107 bytes; choose a shorter one", path.display())]
    PathTooLong {
        /// The path.
        path: PathBuf,
    },
    /// A card cannot be used.
    #[error(transparent)]
    Ether(#[from] EtherError),
    /// An `ether` address to listen on names a peer.
    #[error("{address} names a peer; to listen, write the names of this machine's cards alone: ether://CARD")]
    NamesPeer {
        /// The address.
        address: String,
    },
    /// A `tls` or `ether` address without an identity or authorized keys.
    #[error("{address} needs an identity and an authorized-keys file; give --authorized FILE")]
    NoIdentity {
        /// The address.
        address: String,
    },
    /// ssh addresses: only sshd can listen.
    #[error(
        "cannot listen on {address}: ssh starts `wirefs serve --stdio` by itself; listen on tls://host:port or unix:///path"
    )]
    NotListenable {
        /// The address.
        address: String,
    },
    /// Our own key cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The authorized-keys file cannot be used.
    #[error(transparent)]
    Authorized(#[from] AuthorizedError),
    /// Another error of the system.
    #[error("cannot listen on {address}: {error}")]
    Io {
        /// The address.
        address: String,
        /// The system's error.
        error: io::Error,
    },
    /// This process is out of file descriptors.
    #[error("this machine has no resources left to listen: {0}")]
    Resources(io::Error),
}

impl ListenError {
    pub(super) fn tcp(address: &Address, host: &HostPort, error: io::Error) -> Self {
        let address = address.to_string();
        match error.kind() {
            io::ErrorKind::AddrInUse => Self::Busy { address },
            io::ErrorKind::PermissionDenied => Self::Forbidden { address },
            io::ErrorKind::AddrNotAvailable => Self::NotOurs { host: host.host.clone() },
            _ => Self::Io { address, error },
        }
    }
}

/// A connection failed before the end of its handshake, or the listener was closed.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// The listener was closed.
    #[error("the listener was closed")]
    Closed,
    /// The socket failed.
    #[error("accepting failed: {0}")]
    Io(io::Error),
    /// The peer did not finish its handshake in time.
    #[error("{peer} did not finish the handshake in time")]
    Silent {
        /// The peer's address.
        peer: String,
    },
    /// The peer's key is not authorized.
    #[error("refused {peer}: its key {} {}; to let it in, run:\n  wirefs allow {line}{}",
        if *.is_listed { "may not connect from there, by its option `from` in" } else { "is not in" },
        file.display(), list(.broken)
    )]
    UnknownKey {
        /// The file has the key, for other networks.
        is_listed: bool,
        /// The peer's address.
        peer: String,
        /// The line to add.
        line: String,
        /// The authorized-keys file.
        file: PathBuf,
        /// Invalid lines of that file; its other lines count.
        broken: Vec<String>,
    },
    /// The peer does not trust this server's key.
    #[error("{peer} does not accept this server's key: it knows another one for this address")]
    NotTrusted {
        /// The peer's address.
        peer: String,
    },
    /// The peer's TLS handshake is not ours.
    #[error("{peer} failed the TLS handshake: {error}")]
    Handshake {
        /// The peer's address.
        peer: String,
        /// The error.
        error: String,
    },
    /// The authorized-keys file is missing or unusable, so no client may connect.
    #[error("refused {peer}: {error}\n  its key is: {line}")]
    Unusable {
        /// The peer's address.
        peer: String,
        /// The line that would authorize the peer.
        line: String,
        /// The error of the file.
        error: String,
    },
}

fn list(lines: &[String]) -> String {
    lines.iter().map(|line| format!("\n  {line}")).collect()
}
