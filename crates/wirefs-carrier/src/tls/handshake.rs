//! The handshake, with a deadline, in the connection's thread.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};

use super::cipher::{Incoming, Outgoing};
use super::session::{Session, Step};
use crate::stream::wait;

/// Time for a refused peer to read the alert.
const ALERT_DRAIN_TIME: Duration = Duration::from_secs(2);
/// Bytes that a refused peer may still send before the close.
const ALERT_DRAIN_BYTES_MAX: usize = 256 * 1024;

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

/// Sends the alert, then reads until the peer closes: a close with unread bytes would reset the connection, and the
/// peer would never read the alert.
fn drain_after_alert(socket: &OwnedFd, outgoing: &mut Outgoing) {
    let deadline = Instant::now() + ALERT_DRAIN_TIME;
    if send(socket, outgoing, deadline).is_err() || rustix::net::shutdown(socket, Shutdown::Write).is_err() {
        return;
    }
    let mut budget = ALERT_DRAIN_BYTES_MAX;
    let mut ignored = [0; 4096];
    while await_ready(socket, PollFlags::IN, deadline).is_ok() {
        match rustix::net::recv(socket, &mut ignored, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => return,
            Ok((_, count)) if count < budget => budget -= count,
            Ok(_) => return,
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return,
        }
    }
}
