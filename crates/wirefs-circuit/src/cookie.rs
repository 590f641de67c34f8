//! Cookies: a stranger shows that it receives at the address it sends from, before anything is kept or computed for it.
//!
//! # Source
//! RFC 9147 (DTLS 1.3), section 5.1: a keyed hash of who asks, which needs no memory.

use std::time::Duration;

use ring::hmac::{HMAC_SHA256, Key};
use wirefs_op::Time;

use crate::address::{Address, CardId};
use crate::limits::COOKIE_LIFE;

/// A cookie, in bytes.
pub(crate) const COOKIE_BYTES: usize = 16;
/// One that was not given yet.
pub(crate) const NO_COOKIE: [u8; COOKIE_BYTES] = [0; COOKIE_BYTES];

#[derive(Debug)]
pub(crate) struct Baker(Key);

impl Baker {
    pub(crate) fn new(secret: &[u8; 32]) -> Baker {
        Baker(Key::new(HMAC_SHA256, secret))
    }

    fn epoch(now: Time) -> u64 {
        let life = u64::try_from(COOKIE_LIFE.as_nanos()).unwrap_or(u64::MAX);
        now.since(Time::default()).max(Duration::ZERO).as_nanos() as u64 / life
    }

    fn bake_in(&self, epoch: u64, card: CardId, source: Address, public: &[u8; 32]) -> [u8; COOKIE_BYTES] {
        let who = [&epoch.to_be_bytes()[..], &[card.0], &source.0, public].concat();
        let tag = ring::hmac::sign(&self.0, &who);
        let mut cookie = NO_COOKIE;
        cookie.iter_mut().zip(tag.as_ref()).for_each(|(to, from)| *to = *from);
        cookie
    }

    /// The cookie of a stranger that shows this public key.
    pub(crate) fn bake(
        &self,
        now: Time,
        card: CardId,
        source: Address,
        public: &[u8; 32],
    ) -> [u8; COOKIE_BYTES] {
        self.bake_in(Self::epoch(now), card, source, public)
    }

    /// Whether it is that stranger's cookie, and not too old.
    pub(crate) fn is_good(
        &self,
        now: Time,
        card: CardId,
        source: Address,
        public: &[u8; 32],
        cookie: &[u8; COOKIE_BYTES],
    ) -> bool {
        let epoch = Self::epoch(now);
        [Some(epoch), epoch.checked_sub(1)].into_iter().flatten().any(|epoch| {
            let good = self.bake_in(epoch, card, source, public);
            // No early end: the time it takes says nothing about where they differ.
            good.iter().zip(cookie).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
        })
    }
}

#[cfg(test)]
mod tests;
