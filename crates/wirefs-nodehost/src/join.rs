//! Joining by the code of an invitation.

use crate::invite::{INVITATION_PORT_DEFAULT, entropy, framed};
use crate::segment::{Segment, SegmentError};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};
use wirefs_node::invitation::{
    Introduction, InvitationCode, InvitationError, Joiner, Refusal, offered_port, query,
};

/// The queries of a segment, in case some are lost.
const QUERIES: usize = 10;
/// The interval of queries.
const QUERY_INTERVAL: Duration = Duration::from_millis(300);
/// The machines of a segment that are tried: anyone can answer a query.
const OFFERS_MAX: usize = 4;
/// The timeout of each step of a conversation.
const STEP_MAX: Duration = Duration::from_secs(5);
/// Longer than an offer.
const DATAGRAM_BYTES_MAX: usize = 64;

/// The place of the inviter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InviterPlace {
    /// On a segment of these cards; of all cards if there are none.
    Segment(Vec<String>),
    /// A host, with the port.
    Host(String, u16),
}

/// The reason why this machine was not admitted.
#[derive(Debug, thiserror::Error)]
pub enum JoinFailure {
    /// No machine of the segment has answered.
    #[error("no machine on this network segment has an open invitation with this code")]
    NoOffer,
    /// The cards cannot be used.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// The host cannot be reached.
    #[error("cannot reach an invitation at {place}: {error}")]
    Unreachable {
        /// The host and port.
        place: String,
        /// The system's error.
        error: io::Error,
    },
    /// The conversation broke; the code may be used up.
    #[error("the connection to the inviting machine broke: {0}")]
    Broken(io::Error),
    /// The code is wrong.
    #[error("the code is wrong")]
    WrongCode,
    /// The invitation is over.
    #[error("the invitation is over: it was used, has expired, or had too many wrong codes")]
    Over,
    /// The inviter could not store our key.
    #[error("the inviting machine could not store this machine's key; it says why")]
    NotStored,
    /// The other machine does not know the code either.
    #[error("the machine that answered does not know the code itself, so it is not the inviting one")]
    NotInviter,
    /// The other program is no invitation.
    #[error("the program that answered is no invitation of wirefs, or of another version")]
    Malformed,
}

impl From<InvitationError> for JoinFailure {
    fn from(error: InvitationError) -> JoinFailure {
        match error {
            InvitationError::Refused(Refusal::WrongCode) => JoinFailure::WrongCode,
            InvitationError::Refused(Refusal::Over) => JoinFailure::Over,
            InvitationError::Refused(Refusal::NotStored) => JoinFailure::NotStored,
            InvitationError::NotInviter => JoinFailure::NotInviter,
            InvitationError::Refused(Refusal::Malformed) | InvitationError::Malformed => {
                JoinFailure::Malformed
            }
        }
    }
}

/// Joins by a code: the inviter has stored our key when this returns its introduction.
///
/// # Errors
/// The inviter is not found, or does not admit this machine.
///
/// # Cost
/// Three round trips with a host; on a segment without the inviter, 3 s.
pub fn join(
    code: &InvitationCode,
    own: &Introduction,
    place: &InviterPlace,
) -> Result<Introduction, JoinFailure> {
    match place {
        InviterPlace::Segment(cards) => join_on_segment(code, own, cards),
        InviterPlace::Host(host, port) => {
            let unreachable = |error| JoinFailure::Unreachable { place: format!("{host}:{port}"), error };
            let mut addresses = (host.as_str(), *port).to_socket_addrs().map_err(unreachable)?;
            let mut failed = io::ErrorKind::NotFound.into();
            let stream = addresses.find_map(|address| {
                TcpStream::connect_timeout(&address, STEP_MAX).map_err(|error| failed = error).ok()
            });
            talk(stream.ok_or_else(|| unreachable(failed))?, code, own)
        }
    }
}

fn join_on_segment(
    code: &InvitationCode,
    own: &Introduction,
    cards: &[String],
) -> Result<Introduction, JoinFailure> {
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let segment = Segment::open(any, cards, &[])?;
    let mut attempts = Attempts { tried: Vec::new(), failure: JoinFailure::NoOffer };
    for _ in 0..QUERIES {
        segment.send_to_group(INVITATION_PORT_DEFAULT, &query(code));
        let until = Instant::now() + QUERY_INTERVAL;
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            let Some((from, bytes)) = segment.receive(&mut buffer, left) else { continue };
            let packet = buffer.get(..bytes).unwrap_or_default();
            let Some(port) = offered_port(code, packet) else { continue };
            let offer = SocketAddr::new(from.ip(), port);
            if !attempts.begin(offer.ip()) {
                continue;
            }
            let unreachable = |error| JoinFailure::Unreachable { place: offer.to_string(), error };
            let stream = TcpStream::connect_timeout(&offer, STEP_MAX).map_err(unreachable);
            match stream.and_then(|stream| talk(stream, code, own)) {
                Ok(inviter) => return Ok(inviter),
                Err(failed) => attempts.record(failed),
            }
            if attempts.are_over() {
                return Err(attempts.failure);
            }
        }
    }
    Err(attempts.failure)
}

/// The attempts to join at machines of a segment.
struct Attempts {
    /// The addresses of the machines. A machine has one attempt, whatever ports it offers.
    tried: Vec<IpAddr>,
    failure: JoinFailure,
}

impl Attempts {
    /// Begins an attempt, and returns whether this machine may have one.
    fn begin(&mut self, machine: IpAddr) -> bool {
        let is_new = !self.are_over() && !self.tried.contains(&machine);
        if is_new {
            self.tried.push(machine);
        }
        is_new
    }

    /// Records a failure. A later one does not replace that of an invitation which is over.
    fn record(&mut self, failure: JoinFailure) {
        if matches!(failure, JoinFailure::WrongCode) || !matches!(self.failure, JoinFailure::Over) {
            self.failure = failure;
        }
    }

    /// Returns whether no machine is tried any more. A wrong code ends the attempts: an inviter on two networks would
    /// count it twice.
    fn are_over(&self) -> bool {
        self.tried.len() == OFFERS_MAX || matches!(self.failure, JoinFailure::WrongCode)
    }
}

/// Talks with an inviter.
fn talk(
    mut stream: TcpStream,
    code: &InvitationCode,
    own: &Introduction,
) -> Result<Introduction, JoinFailure> {
    let mut step = |message: &[u8]| -> io::Result<Vec<u8>> {
        stream.write_all(&framed(message))?;
        receive(&mut stream, Instant::now() + STEP_MAX)
    };
    let (joiner, hello) = Joiner::begin(code, own, entropy().map_err(JoinFailure::Broken)?);
    let reply = step(&hello).map_err(JoinFailure::Broken)?;
    let (waiting, proof) = joiner.receive_hello(&reply)?;
    let reply = step(&proof).map_err(JoinFailure::Broken)?;
    Ok(waiting.receive_proof(&reply)?)
}

/// Receives a message until the deadline.
fn receive(stream: &mut TcpStream, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut received = Vec::new();
    loop {
        if let Some((length, rest)) = received.split_first()
            && rest.len() >= usize::from(*length)
        {
            return Ok(rest.iter().take(usize::from(*length)).copied().collect());
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let mut chunk = [0; 256];
        match stream.read(&mut chunk) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => received.extend(chunk.iter().take(count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempts() -> Attempts {
        Attempts { tried: Vec::new(), failure: JoinFailure::NoOffer }
    }

    fn machine(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    #[test]
    fn machine_has_one_attempt_and_four_machines_end_them() {
        let mut attempts = attempts();
        assert!(attempts.begin(machine(1)) && !attempts.begin(machine(1)));
        attempts.record(JoinFailure::NotInviter);
        assert!(!attempts.are_over());
        assert_eq!([2, 3, 4, 5].map(|number| attempts.begin(machine(number))), [true, true, true, false]);
        assert!(attempts.are_over());
    }

    /// S-175: a typing error costs one try, also where the inviter answers on two networks.
    #[test]
    fn wrong_code_ends_the_attempts() {
        let mut attempts = attempts();
        assert!(attempts.begin(machine(1)));
        attempts.record(JoinFailure::WrongCode);
        assert!(attempts.are_over() && !attempts.begin(machine(2)));
    }

    #[test]
    fn failures_of_others_do_not_hide_that_the_invitation_is_over() {
        let mut attempts = attempts();
        attempts.record(JoinFailure::Over);
        attempts.record(JoinFailure::NotInviter);
        assert!(matches!(attempts.failure, JoinFailure::Over));
    }
}
