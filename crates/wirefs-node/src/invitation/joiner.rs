//! The side that joins.

use super::code::InvitationCode;
use super::message;
use super::secret::{Exchange, Secret, Side};
use super::{Entropy, Introduction, Refusal};

/// The reason why a joiner was not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvitationError {
    /// The inviter refused.
    Refused(Refusal),
    /// The other machine does not know the code: it is not the inviter.
    NotInviter,
    /// The other machine does not speak this protocol.
    Malformed,
}

impl From<Refusal> for InvitationError {
    fn from(_: Refusal) -> InvitationError {
        InvitationError::Malformed
    }
}

/// A joiner that has sent its hello.
pub struct Joiner {
    exchange: Exchange,
    hello: Vec<u8>,
}

/// A joiner that has sent its proof.
pub struct WaitingJoiner {
    inviter: Introduction,
    secret: Secret,
    hellos: Vec<u8>,
}

/// Returns the packet that asks a segment for the inviter of a code.
pub fn query(code: &InvitationCode) -> Vec<u8> {
    message::query(code.label())
}

/// Returns the port in an offer for this code's label; `None`: the packet is none. Anyone can send offers.
pub fn offered_port(code: &InvitationCode, packet: &[u8]) -> Option<u16> {
    let (label, port) = message::read_offer(packet)?;
    (label == code.label()).then_some(port)
}

impl Joiner {
    /// Returns also the hello to send.
    pub fn begin(code: &InvitationCode, own: &Introduction, entropy: Entropy) -> (Joiner, Vec<u8>) {
        let (exchange, ours) = Exchange::begin(Side::Joiner, code, entropy);
        let hello = message::hello(Side::Joiner, &ours, own);
        (Joiner { exchange, hello: hello.clone() }, hello)
    }

    /// Takes the inviter's hello, and returns the proof to send.
    ///
    /// # Errors
    /// The inviter refused, or the message is malformed.
    pub fn receive_hello(self, bytes: &[u8]) -> Result<(WaitingJoiner, Vec<u8>), InvitationError> {
        check_refusal(bytes)?;
        let (theirs, inviter) = message::read_hello(Side::Inviter, bytes)?;
        let secret = self.exchange.finish(theirs)?;
        let hellos = [&self.hello, bytes].concat();
        let ours = message::proof(Side::Joiner, &secret.prove(Side::Joiner, &hellos));
        Ok((WaitingJoiner { inviter, secret, hellos }, ours))
    }
}

impl WaitingJoiner {
    /// Takes the inviter's proof, and returns the inviter, which has stored our key.
    ///
    /// # Errors
    /// The inviter refused, or the other machine is not the inviter.
    pub fn receive_proof(self, bytes: &[u8]) -> Result<Introduction, InvitationError> {
        check_refusal(bytes)?;
        let theirs = message::read_proof(Side::Inviter, bytes)?;
        match self.secret.is_proved(Side::Inviter, &self.hellos, theirs) {
            true => Ok(self.inviter),
            false => Err(InvitationError::NotInviter),
        }
    }
}

fn check_refusal(bytes: &[u8]) -> Result<(), InvitationError> {
    message::read_refusal(bytes).map_or(Ok(()), |refusal| Err(InvitationError::Refused(refusal)))
}
