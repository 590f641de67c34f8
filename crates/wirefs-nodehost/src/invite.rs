//! An open invitation: answers queries of the segment, and talks with several joiners at once.
//!
//! One thread serves all of them. A message fits a socket's buffer, so nothing waits to send.

mod conversation;

use crate::segment::{Segment, SegmentError};
use conversation::Conversation;
pub(crate) use conversation::framed;
use ring::rand::{SecureRandom, SystemRandom};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::time::{Duration, Instant};
use wirefs_node::invitation::{Entropy, Introduction, Invitation, InvitationCode, Refusal};
use wirefs_op::Time;

/// The default port of invitations: UDP for queries, TCP for conversations.
pub const INVITATION_PORT_DEFAULT: u16 = 6443;
/// The conversations at a time. A further one ends the oldest of the address that has most.
const CONVERSATIONS_MAX: usize = 16;
/// The ports that are tried if the system chooses: UDP and TCP need the same one.
const PORT_ATTEMPTS_MAX: usize = 16;
/// Longer than a query.
const DATAGRAM_BYTES_MAX: usize = 64;

/// The reason why an invitation ended without a guest.
#[derive(Debug, thiserror::Error)]
pub enum InviteEnd {
    /// The time is over.
    #[error("nobody used the code in time")]
    Expired,
    /// Wrong codes were tried.
    #[error("wrong codes were tried, so the code is no longer good")]
    WrongCodes,
    /// The guest's key could not be stored.
    #[error("a machine with the right code could not be admitted")]
    NotStored,
    /// The system fails.
    #[error("cannot serve the invitation: {0}")]
    System(#[from] io::Error),
}

/// The sockets of an invitation.
#[derive(Debug)]
pub struct Inviter {
    segment: Segment,
    listener: TcpListener,
    port: u16,
    started: Instant,
}

impl Inviter {
    /// Opens the sockets.
    ///
    /// # Errors
    /// The port is in use, or the address belongs to another machine.
    pub fn open(listen: SocketAddr) -> Result<Inviter, SegmentError> {
        let mut attempts = 1;
        let (segment, listener) = loop {
            let segment = Segment::open(listen, &[], &[])?;
            let chosen = SocketAddr::new(listen.ip(), segment.port()?);
            match TcpListener::bind(chosen) {
                Ok(listener) => break (segment, listener),
                // The system chose a port that is free for UDP only.
                Err(error)
                    if listen.port() == 0
                        && error.kind() == io::ErrorKind::AddrInUse
                        && attempts < PORT_ATTEMPTS_MAX =>
                {
                    attempts += 1;
                }
                Err(source) => return Err(SegmentError::Bind { listen: chosen, source }),
            }
        };
        listener.set_nonblocking(true)?;
        Ok(Inviter { port: segment.port()?, segment, listener, started: Instant::now() })
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Invites with a code until a machine is admitted. `store` authorizes its key, and returns whether it could.
    ///
    /// # Errors
    /// The invitation ended without a guest.
    pub fn run(
        &self,
        code: InvitationCode,
        own: Introduction,
        mut store: impl FnMut(&Introduction) -> bool,
    ) -> Result<Introduction, InviteEnd> {
        let mut invitation = Invitation::new(code, own, self.now());
        let mut conversations: Vec<Conversation> = Vec::new();
        loop {
            let now = self.now();
            if now >= invitation.deadline() {
                return Err(InviteEnd::Expired);
            }
            conversations.retain(|talk| talk.deadline() > now);
            let next =
                conversations.iter().map(Conversation::deadline).fold(invitation.deadline(), Time::min);
            let ready = self.await_any(&conversations, next.since(now))?;
            for index in ready.into_iter().rev() {
                let Some(talk) = conversations.get_mut(index) else { continue };
                match talk.advance(&mut invitation, self.now(), entropy()?, &mut store) {
                    Ok(Some(guest)) => return Ok(guest),
                    Ok(None) => continue,
                    Err(Refusal::NotStored) => return Err(InviteEnd::NotStored),
                    Err(_) => drop(conversations.remove(index)),
                }
                if invitation.tries_left() == 0 {
                    return Err(InviteEnd::WrongCodes);
                }
            }
            self.answer_query(&invitation);
            self.accept(&mut conversations);
        }
    }

    fn now(&self) -> Time {
        Time(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Waits for a socket, and returns the conversations whose sockets are ready.
    fn await_any(&self, conversations: &[Conversation], left: Duration) -> io::Result<Vec<usize>> {
        let mut watched = vec![
            PollFd::new(self.segment.socket(), PollFlags::IN),
            PollFd::new(&self.listener, PollFlags::IN),
        ];
        let own = watched.len();
        watched.extend(conversations.iter().map(|talk| PollFd::new(talk.stream(), PollFlags::IN)));
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut watched, Some(&left)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let ready = watched.iter().skip(own).enumerate().filter(|(_, watched)| !watched.revents().is_empty());
        Ok(ready.map(|(index, _)| index).collect())
    }

    fn answer_query(&self, invitation: &Invitation) {
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        let Some((from, bytes)) = self.segment.receive(&mut buffer, Duration::ZERO) else { return };
        let packet = buffer.get(..bytes).unwrap_or_default();
        if let Some(offer) = invitation.offer(self.now(), packet, self.port) {
            self.segment.send_to(from, &offer);
        }
    }

    /// Begins the conversations that arrived.
    fn accept(&self, conversations: &mut Vec<Conversation>) {
        while let Ok((stream, from)) = self.listener.accept() {
            let from = from.ip().to_canonical();
            conversations.extend(Conversation::begin(stream, from, self.now()));
            if conversations.len() > CONVERSATIONS_MAX {
                most_crowded(conversations).map(|index| conversations.remove(index));
            }
        }
    }
}

/// Makes a code.
///
/// # Errors
/// The system has no random bytes.
pub fn random_code() -> io::Result<InvitationCode> {
    let random = entropy()?;
    Ok(InvitationCode::from_random(random.first_chunk().copied().unwrap_or_default()))
}

/// Returns the oldest conversation of the address that has most of them; the oldest one of several such addresses.
fn most_crowded(conversations: &[Conversation]) -> Option<usize> {
    let mut addresses: BTreeMap<IpAddr, (usize, usize)> = BTreeMap::new();
    for (index, talk) in conversations.iter().enumerate() {
        addresses.entry(talk.from()).or_insert((0, index)).0 += 1;
    }
    let most = addresses.into_values().max_by_key(|(count, oldest)| (*count, usize::MAX - *oldest));
    most.map(|(_, oldest)| oldest)
}

/// Returns random bytes.
///
/// # Errors
/// The system has none.
pub(crate) fn entropy() -> io::Result<Entropy> {
    let mut bytes = [0; size_of::<Entropy>()];
    SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("no random bytes"))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
