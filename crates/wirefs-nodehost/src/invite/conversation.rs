//! One joiner's connection to an invitation.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::time::Duration;
use wirefs_node::invitation::{Entropy, Introduction, Invitation, PendingGuest, Refusal};
use wirefs_op::Time;

/// The time of a conversation.
const CONVERSATION_TIME: Duration = Duration::from_secs(10);

/// A joiner's connection.
pub(super) struct Conversation {
    stream: TcpStream,
    from: IpAddr,
    deadline: Time,
    received: Vec<u8>,
    pending: Option<PendingGuest>,
}

impl Conversation {
    pub(super) fn begin(stream: TcpStream, from: IpAddr, now: Time) -> io::Result<Conversation> {
        stream.set_nonblocking(true)?;
        let deadline = now + CONVERSATION_TIME;
        Ok(Conversation { stream, from, deadline, received: Vec::new(), pending: None })
    }

    pub(super) fn deadline(&self) -> Time {
        self.deadline
    }

    pub(super) fn from(&self) -> IpAddr {
        self.from
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Takes the bytes that arrived. Returns the guest once one is admitted.
    ///
    /// # Errors
    /// The conversation is over.
    pub(super) fn advance(
        &mut self,
        invitation: &mut Invitation,
        now: Time,
        entropy: Entropy,
        store: &mut impl FnMut(&Introduction) -> bool,
    ) -> Result<Option<Introduction>, Refusal> {
        let Some(message) = self.receive()? else { return Ok(None) };
        let answered = match self.pending.take() {
            None => invitation.receive_hello(now, &message, entropy).map(|(pending, reply)| {
                self.pending = Some(pending);
                (None, reply)
            }),
            Some(pending) => invitation.receive_proof(now, pending, &message).and_then(|admission| {
                let is_stored = store(&admission.guest);
                let admitted = (Some(admission.guest), admission.reply);
                is_stored.then_some(admitted).ok_or(Refusal::NotStored)
            }),
        };
        match answered {
            Ok((guest, reply)) => {
                let sent = self.send(&reply);
                // A guest whose key is stored stays one, even if it does not get the reply.
                if guest.is_some() { Ok(guest) } else { sent.map(|()| None) }
            }
            Err(refusal) => {
                let _gone = self.send(&refusal.message());
                Err(refusal)
            }
        }
    }

    /// Receives; returns a message once it is complete.
    fn receive(&mut self) -> Result<Option<Vec<u8>>, Refusal> {
        let mut chunk = [0; 256];
        match self.stream.read(&mut chunk) {
            Ok(0) => return Err(Refusal::Malformed),
            Ok(count) => self.received.extend(chunk.iter().take(count)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return Err(Refusal::Malformed),
        }
        let Some((length, rest)) = self.received.split_first() else { return Ok(None) };
        match rest.len().checked_sub(usize::from(*length)) {
            None => Ok(None),
            Some(0) => {
                let message = rest.to_vec();
                self.received.clear();
                Ok(Some(message))
            }
            // The joiner has to wait for each reply.
            Some(_) => Err(Refusal::Malformed),
        }
    }

    fn send(&mut self, message: &[u8]) -> Result<(), Refusal> {
        self.stream.write_all(&framed(message)).map_err(|_| Refusal::Malformed)
    }
}

/// Returns a message after its length, which fits a byte.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let mut framed = vec![u8::try_from(message.len()).unwrap_or(u8::MAX)];
    framed.extend_from_slice(message);
    framed
}
