//! Frames over a byte stream of a file descriptor: sockets and pipes.

mod sink;
mod source;
mod wake;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown};

pub(crate) use sink::StreamSink;
pub(crate) use source::StreamSource;
pub(crate) use wake::{Wake, wait};

use crate::carrier::{Carrier, PeerInfo};
use crate::closer::Closer;
use crate::limits::{LINGER_BYTES_MAX, LINGER_TIME};

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

/// Ends the sending on a socket, and reads until the peer closes, within limits: a close with unread bytes would reset
/// the connection, and the peer could not read what was sent last.
pub(crate) fn linger(socket: &OwnedFd) {
    if rustix::net::shutdown(socket, Shutdown::Write).is_err() {
        return;
    }
    let deadline = Instant::now() + LINGER_TIME;
    let mut budget = LINGER_BYTES_MAX;
    let mut ignored = [0; 4096];
    loop {
        let remaining = deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() || !wait(socket, PollFlags::IN, None, Some(remaining)).unwrap_or(false) {
            return;
        }
        match rustix::net::recv(socket, &mut ignored, RecvFlags::DONTWAIT) {
            Ok((_, count)) if (1..budget).contains(&count) => budget -= count,
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(_) | Err(_) => return,
        }
    }
}

/// Returns the carrier of a connected stream socket in blocking mode.
pub(crate) fn over_socket(socket: OwnedFd, peer: PeerInfo) -> Carrier {
    let socket = Arc::new(socket);
    let (shutting, lingering) = (Arc::clone(&socket), Arc::clone(&socket));
    let closer = Closer::lingering(move || shut(&shutting), move || linger(&lingering));
    Carrier {
        source: Box::new(StreamSource::new(Stream::Socket(Arc::clone(&socket)), closer.clone())),
        sink: Box::new(StreamSink::new(Stream::Socket(socket), closer.clone())),
        closer,
        peer,
    }
}
