//! The handshake, with a deadline, in the connection's thread.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::cipher::{Incoming, Outgoing};
use super::session::{Session, Step};
use crate::limits::LINGER_TIME;
use crate::stream::{linger, wait};

/// Errors of a handshake.
#[derive(Debug)]
pub(super) enum HandshakeError {
    Silent,
    Closed,
    Tls(rustls::Error),
    Io(io::Error),
}

impl From<io::Error> for HandshakeError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Runs the handshake and sends all its messages. Returns the application data that arrived in one piece with the
/// peer's last handshake message: rustls decrypts it before it reports the end of the handshake. It is smaller than an
/// [`Incoming`] buffer.
pub(super) fn run(
    socket: &OwnedFd,
    session: &mut Session,
    incoming: &mut Incoming,
    outgoing: &mut Outgoing,
    deadline: Instant,
) -> Result<Vec<u8>, HandshakeError> {
    let mut trailing = Vec::new();
    loop {
        match session.step(incoming, outgoing, &mut |plain| trailing.extend_from_slice(plain)) {
            Ok(Step::Progress) => {}
            Ok(Step::Handshaking) => {
                send(socket, outgoing, deadline)?;
                receive(socket, incoming, deadline)?;
            }
            Ok(Step::Ready) => {
                send(socket, outgoing, deadline)?;
                return Ok(trailing);
            }
            Ok(Step::PeerClosed) => return Err(HandshakeError::Closed),
            Err(error) => {
                drain_after_alert(socket, outgoing);
                return Err(HandshakeError::Tls(error));
            }
        }
    }
}

/// Sends all of `outgoing`.
pub(super) fn send(
    socket: &OwnedFd,
    outgoing: &mut Outgoing,
    deadline: Instant,
) -> Result<(), HandshakeError> {
    while !outgoing.is_empty() {
        match rustix::net::send(socket, outgoing.rest(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(count) => outgoing.advance(count),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => await_ready(socket, PollFlags::OUT, deadline)?,
            Err(Errno::PIPE | Errno::CONNRESET) => return Err(HandshakeError::Closed),
            Err(errno) => return Err(HandshakeError::Io(errno.into())),
        }
    }
    Ok(())
}

fn receive(socket: &OwnedFd, incoming: &mut Incoming, deadline: Instant) -> Result<(), HandshakeError> {
    loop {
        match rustix::net::recv(socket, incoming.room(), RecvFlags::DONTWAIT) {
            Ok((_, 0)) => return Err(HandshakeError::Closed),
            Ok((_, count)) => {
                incoming.took(count);
                return Ok(());
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => await_ready(socket, PollFlags::IN, deadline)?,
            Err(Errno::CONNRESET) => return Err(HandshakeError::Closed),
            Err(errno) => return Err(HandshakeError::Io(errno.into())),
        }
    }
}

fn await_ready(socket: &OwnedFd, events: PollFlags, deadline: Instant) -> Result<(), HandshakeError> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() || !wait(socket, events, None, Some(left))? {
        return Err(HandshakeError::Silent);
    }
    Ok(())
}

/// Sends the alert, and lets the peer read it.
fn drain_after_alert(socket: &OwnedFd, outgoing: &mut Outgoing) {
    if send(socket, outgoing, Instant::now() + LINGER_TIME).is_ok() {
        linger(socket);
    }
}
