//! The key exchange, and the proofs under its key.

use super::code::InvitationCode;
use super::{Entropy, Refusal};
use rand_core::{CryptoRng, Error, RngCore};
use ring::hmac;
use spake2::{Ed25519Group, Identity, Password, Spake2};

/// Bytes of a message of the key exchange.
pub(super) const EXCHANGE_BYTES: usize = 33;
/// Bytes of a proof.
pub(super) const PROOF_BYTES: usize = 32;

/// The two sides of an invitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Joiner,
    Inviter,
}

impl Side {
    fn purpose(self) -> &'static [u8] {
        match self {
            Side::Joiner => b"wirefs invitation joiner\0",
            Side::Inviter => b"wirefs invitation inviter\0",
        }
    }
}

/// A key exchange that has sent its message.
pub(super) struct Exchange(Spake2<Ed25519Group>);

impl Exchange {
    /// Returns also the message for the other side.
    pub(super) fn begin(side: Side, code: &InvitationCode, entropy: Entropy) -> (Exchange, Vec<u8>) {
        let password = Password::new(code.digits());
        let joiner = Identity::new(Side::Joiner.purpose());
        let inviter = Identity::new(Side::Inviter.purpose());
        let random = GivenBytes(entropy.into_iter());
        let (exchange, message) = match side {
            Side::Joiner => Spake2::start_a_with_rng(&password, &joiner, &inviter, random),
            Side::Inviter => Spake2::start_b_with_rng(&password, &joiner, &inviter, random),
        };
        (Exchange(exchange), message)
    }

    /// Takes the other side's message. The other side has the same secret if it has the same code.
    pub(super) fn finish(self, message: &[u8]) -> Result<Secret, Refusal> {
        let key = self.0.finish(message).map_err(|_| Refusal::Malformed)?;
        Ok(Secret(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }
}

/// The derived secret.
pub(super) struct Secret(hmac::Key);

impl Secret {
    /// Returns a side's proof that it knows the code and has seen both hellos.
    pub(super) fn prove(&self, side: Side, hellos: &[u8]) -> Vec<u8> {
        hmac::sign(&self.0, &[side.purpose(), hellos].concat()).as_ref().to_vec()
    }

    pub(super) fn is_proved(&self, side: Side, hellos: &[u8], proof: &[u8]) -> bool {
        hmac::verify(&self.0, &[side.purpose(), hellos].concat(), proof).is_ok()
    }
}

/// Random bytes from the caller: this crate has no entropy.
struct GivenBytes(<Entropy as IntoIterator>::IntoIter);

impl RngCore for GivenBytes {
    fn next_u32(&mut self) -> u32 {
        let mut bytes = [0; 4];
        self.fill_bytes(&mut bytes);
        u32::from_le_bytes(bytes)
    }

    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill_bytes(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    // INVARIANT: an exchange draws one scalar, of as many bytes as `Entropy` has.
    fn fill_bytes(&mut self, room: &mut [u8]) {
        assert!(room.len() <= self.0.len(), "a key exchange takes one scalar of random bytes");
        room.iter_mut().zip(&mut self.0).for_each(|(byte, random)| *byte = random);
    }

    fn try_fill_bytes(&mut self, room: &mut [u8]) -> Result<(), Error> {
        self.fill_bytes(room);
        Ok(())
    }
}

impl CryptoRng for GivenBytes {}
