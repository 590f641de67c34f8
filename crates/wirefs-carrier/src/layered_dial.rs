//! A dialer whose carriers have the layers of a mount: limits of the rate, and above them packing.

use std::sync::Arc;

use crate::carrier::Carrier;
use crate::dial::{Dial, DialError};
use crate::packing::{PackedBytes, packing};
use crate::path::PathStatus;
use crate::rate_limit::{RateLimits, rate_limited};
use crate::ssh::UserPrompts;

/// Dials with another dialer. All carriers together stay below the limits. While these are paused, every dial fails.
/// Carriers that leave this machine may pack.
pub struct LayeredDial {
    inner: Arc<dyn Dial>,
    limits: Arc<RateLimits>,
    packed: Option<Arc<PackedBytes>>,
}

impl LayeredDial {
    /// Returns a dialer with these limits. It counts packed messages in `packed`; `None`: all messages are plain.
    pub fn new(
        inner: Arc<dyn Dial>,
        limits: Arc<RateLimits>,
        packed: Option<Arc<PackedBytes>>,
    ) -> LayeredDial {
        LayeredDial { inner, limits, packed }
    }

    fn layered(&self, dial: impl Fn(&dyn Dial) -> Result<Carrier, DialError>) -> Result<Carrier, DialError> {
        if self.limits.is_paused() {
            return Err(DialError::Paused);
        }
        let carrier = rate_limited(dial(&*self.inner)?, &self.limits);
        let is_near = matches!(carrier.peer.carrier, "unix" | "memory");
        Ok(match &self.packed {
            Some(bytes) if !is_near => packing(carrier, bytes),
            Some(_) | None => carrier,
        })
    }
}

impl Dial for LayeredDial {
    fn dial(&self) -> Result<Carrier, DialError> {
        self.layered(|inner| inner.dial())
    }

    fn dial_again(&self) -> Result<Carrier, DialError> {
        self.layered(|inner| inner.dial_again())
    }

    fn dial_additional(&self) -> Result<Carrier, DialError> {
        self.layered(|inner| inner.dial_additional())
    }

    fn path_count(&self) -> usize {
        self.inner.path_count()
    }

    fn paths(&self) -> Vec<PathStatus> {
        self.inner.paths()
    }

    fn prompts(&self) -> Option<&UserPrompts> {
        self.inner.prompts()
    }
}
