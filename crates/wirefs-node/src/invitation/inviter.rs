//! The side that invites.

use super::code::InvitationCode;
use super::message;
use super::secret::{Exchange, Secret, Side};
use super::{Entropy, Introduction, Refusal};
use crate::limits::{INVITATION_TIME, INVITATION_TRIES};
use wirefs_op::Time;

/// An open invitation. Any number of conversations may go on at once; one of them is admitted at most.
#[derive(Debug)]
pub struct Invitation {
    code: InvitationCode,
    own: Introduction,
    deadline: Time,
    tries: u8,
    is_used: bool,
}

/// A conversation that waits for the joiner's proof.
pub struct PendingGuest {
    guest: Introduction,
    secret: Secret,
    hellos: Vec<u8>,
}

/// A joiner that knows the code.
#[derive(Debug)]
pub struct Admission {
    /// The joiner.
    pub guest: Introduction,
    /// The inviter's proof, to be sent once the joiner's key is stored.
    pub reply: Vec<u8>,
}

impl Invitation {
    /// Opens an invitation.
    pub fn new(code: InvitationCode, own: Introduction, now: Time) -> Invitation {
        let deadline = now + INVITATION_TIME;
        Invitation { code, own, deadline, tries: INVITATION_TRIES, is_used: false }
    }

    /// Returns when the invitation ends.
    pub fn deadline(&self) -> Time {
        self.deadline
    }

    /// Returns the wrong codes that are still allowed; at 0 the invitation is over.
    pub fn tries_left(&self) -> u8 {
        self.tries
    }

    fn is_over(&self, now: Time) -> bool {
        self.is_used || self.tries == 0 || now >= self.deadline
    }

    /// Answers a query of the segment for this code's label with a TCP port; others get no answer.
    pub fn offer(&self, now: Time, packet: &[u8], port: u16) -> Option<Vec<u8>> {
        let is_asked = message::read_query(packet)? == self.code.label();
        (is_asked && !self.is_over(now)).then(|| message::offer(self.code.label(), port))
    }

    /// Takes the hello of a joiner, and returns the reply.
    ///
    /// # Errors
    /// The message is malformed, or the invitation is over. No try is lost.
    ///
    /// # Cost
    /// Three multiplications on the curve.
    pub fn receive_hello(
        &self,
        now: Time,
        hello: &[u8],
        entropy: Entropy,
    ) -> Result<(PendingGuest, Vec<u8>), Refusal> {
        if self.is_over(now) {
            return Err(Refusal::Over);
        }
        let (theirs, guest) = message::read_hello(Side::Joiner, hello)?;
        let (exchange, ours) = Exchange::begin(Side::Inviter, &self.code, entropy);
        let secret = exchange.finish(theirs)?;
        let reply = message::hello(Side::Inviter, &ours, &self.own);
        let hellos = [hello, &reply].concat();
        Ok((PendingGuest { guest, secret, hellos }, reply))
    }

    /// Takes the proof of a joiner.
    ///
    /// # Errors
    /// The joiner does not know the code, which costs a try; or the message is malformed, or the invitation is over.
    pub fn receive_proof(
        &mut self,
        now: Time,
        pending: PendingGuest,
        bytes: &[u8],
    ) -> Result<Admission, Refusal> {
        if self.is_over(now) {
            return Err(Refusal::Over);
        }
        let theirs = message::read_proof(Side::Joiner, bytes)?;
        let PendingGuest { guest, secret, hellos } = pending;
        if !secret.is_proved(Side::Joiner, &hellos, theirs) {
            self.tries = self.tries.saturating_sub(1);
            return Err(Refusal::WrongCode);
        }
        self.is_used = true;
        let ours = secret.prove(Side::Inviter, &hellos);
        Ok(Admission { guest, reply: message::proof(Side::Inviter, &ours) })
    }
}
