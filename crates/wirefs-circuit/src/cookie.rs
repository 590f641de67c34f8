//! Stateless cookies: an initiator proves that it receives at its address before the responder stores or
//! computes anything.
//!
//! # Source
//! RFC 9147 (DTLS 1.3), section 5.1: a keyed hash of the initiator's address and key.

use std::time::Duration;

use ring::hmac::{HMAC_SHA256, Key};
use wirefs_op::Time;

use crate::address::{CardAddress, CardId};
use crate::limits::COOKIE_LIFE;

/// The size of a cookie, in bytes.
pub(crate) const COOKIE_BYTES: usize = 16;
/// The value before a cookie was received.
pub(crate) const NO_COOKIE: [u8; COOKIE_BYTES] = [0; COOKIE_BYTES];

/// The key that cookies are computed with.
#[derive(Debug)]
pub(crate) struct CookieKey(Key);

impl CookieKey {
    pub(crate) fn new(secret: &[u8; 32]) -> CookieKey {
        CookieKey(Key::new(HMAC_SHA256, secret))
    }

    fn epoch(now: Time) -> u64 {
        let life = u64::try_from(COOKIE_LIFE.as_nanos()).unwrap_or(u64::MAX);
        now.since(Time::default()).max(Duration::ZERO).as_nanos() as u64 / life
    }

    fn cookie_in(
        &self,
        epoch: u64,
        card: CardId,
        source: CardAddress,
        public: &[u8; 32],
    ) -> [u8; COOKIE_BYTES] {
        let input = [&epoch.to_be_bytes()[..], &[card.0], &source.0, public].concat();
        let tag = ring::hmac::sign(&self.0, &input);
        let mut cookie = NO_COOKIE;
        cookie.iter_mut().zip(tag.as_ref()).for_each(|(to, from)| *to = *from);
        cookie
    }

    /// Returns the cookie for an initiator with this public key.
    pub(crate) fn cookie(
        &self,
        now: Time,
        card: CardId,
        source: CardAddress,
        public: &[u8; 32],
    ) -> [u8; COOKIE_BYTES] {
        self.cookie_in(Self::epoch(now), card, source, public)
    }

    /// Returns whether a cookie is valid for this initiator and not expired.
    pub(crate) fn is_valid(
        &self,
        now: Time,
        card: CardId,
        source: CardAddress,
        public: &[u8; 32],
        cookie: &[u8; COOKIE_BYTES],
    ) -> bool {
        let epoch = Self::epoch(now);
        [Some(epoch), epoch.checked_sub(1)].into_iter().flatten().any(|epoch| {
            let good = self.cookie_in(epoch, card, source, public);
            // Constant time: no information about the position of a mismatch.
            good.iter().zip(cookie).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
        })
    }
}

#[cfg(test)]
mod tests;
