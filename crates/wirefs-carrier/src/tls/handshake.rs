//! The handshake, with a deadline, on the thread of the connection.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};

use super::cipher::{Incoming, Outgoing};
use super::session::{Session, Step};
use crate::stream::wait;

/// How long a refused peer gets to read why.
const LAST_WORDS_TIME: Duration = Duration::from_secs(2);
/// What a refused peer may still send before we hang up, in bytes.
const LAST_WORDS_BYTES_MAX: usize = 256 * 1024;

/// Why a handshake did not come to its end.
#[derive(Debug)]
pub(super) enum HandshakeError {
    Silent,
    Gone,
    Tls(rustls::Error),
    Io(io::Error),
}

impl From<io::Error> for HandshakeError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Drives the handshake to its end; all that it has to send is sent. Hands back what the peer sent behind its last message, where that
/// came in one piece with it: rustls decrypts it before it says that the handshake is over. It is less than [`Incoming`] holds.
pub(super) fn run(
    socket: &OwnedFd,
    session: &mut Session,
    incoming: &mut Incoming,
    outgoing: &mut Outgoing,
    deadline: Instant,
) -> Result<Vec<u8>, HandshakeError> {
    let mut behind = Vec::new();
    loop {
        match session.step(incoming, outgoing, &mut |plain| behind.extend_from_slice(plain)) {
            Ok(Step::Progress) => {}
            Ok(Step::Handshaking) => {
                send(socket, outgoing, deadline)?;
                receive(socket, incoming, deadline)?;
            }
            Ok(Step::Ready) => {
                send(socket, outgoing, deadline)?;
                return Ok(behind);
            }
            Ok(Step::PeerClosed) => return Err(HandshakeError::Gone),
            Err(error) => {
                part(socket, outgoing);
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
            Err(Errno::PIPE | Errno::CONNRESET) => return Err(HandshakeError::Gone),
            Err(errno) => return Err(HandshakeError::Io(errno.into())),
        }
    }
    Ok(())
}

fn receive(socket: &OwnedFd, incoming: &mut Incoming, deadline: Instant) -> Result<(), HandshakeError> {
    loop {
        match rustix::net::recv(socket, incoming.room(), RecvFlags::DONTWAIT) {
            Ok((_, 0)) => return Err(HandshakeError::Gone),
            Ok((_, count)) => {
                incoming.took(count);
                return Ok(());
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => await_ready(socket, PollFlags::IN, deadline)?,
            Err(Errno::CONNRESET) => return Err(HandshakeError::Gone),
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

/// Sends the alert, then reads until the peer hangs up: closing with unread bytes would reset the connection, and the
/// peer would never learn why.
fn part(socket: &OwnedFd, outgoing: &mut Outgoing) {
    let deadline = Instant::now() + LAST_WORDS_TIME;
    if send(socket, outgoing, deadline).is_err() || rustix::net::shutdown(socket, Shutdown::Write).is_err() {
        return;
    }
    let mut budget = LAST_WORDS_BYTES_MAX;
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
