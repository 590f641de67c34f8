//! Frames over a byte stream of a file descriptor: sockets and pipes.

mod sink;
mod source;
mod wake;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::net::Shutdown;

pub(crate) use sink::StreamSink;
pub(crate) use source::StreamSource;
pub(crate) use wake::{Wake, wait};

use crate::carrier::{Carrier, PeerInfo};
use crate::closer::Closer;

/// The descriptor of one direction of a carrier.
#[derive(Clone, Debug)]
pub(crate) enum Stream {
    /// A socket: `shutdown` wakes its waiters, and single calls can be made non-blocking.
    Socket(Arc<OwnedFd>),
    /// Another descriptor, in non-blocking mode; `Wake` ends its waits.
    Pipe(Arc<OwnedFd>, Arc<Wake>),
}

impl Stream {
    pub(crate) fn fd(&self) -> &OwnedFd {
        match self {
            Self::Socket(fd) | Self::Pipe(fd, _) => fd,
        }
    }

    pub(crate) fn wake(&self) -> Option<&Wake> {
        match self {
            Self::Socket(_) => None,
            Self::Pipe(_, wake) => Some(wake),
        }
    }
}

/// Ends both directions of a socket, which wakes all its waiters, now and later.
pub(crate) fn shut(socket: &OwnedFd) {
    // Fails if the peer has closed first; then nothing is left to do.
    let _gone = rustix::net::shutdown(socket, Shutdown::Both);
}

/// Returns the carrier of a connected stream socket in blocking mode.
pub(crate) fn over_socket(socket: OwnedFd, peer: PeerInfo) -> Carrier {
    let socket = Arc::new(socket);
    let closer = Closer::new({
        let socket = Arc::clone(&socket);
        move || shut(&socket)
    });
    Carrier {
        source: Box::new(StreamSource::new(Stream::Socket(Arc::clone(&socket)), closer.clone())),
        sink: Box::new(StreamSink::new(Stream::Socket(socket), closer.clone())),
        closer,
        peer,
    }
}
