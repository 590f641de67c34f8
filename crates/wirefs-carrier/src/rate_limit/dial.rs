//! A dialer whose carriers share the limits of a mount.

use std::sync::Arc;

use super::RateLimits;
use super::sink::RateLimitedSink;
use super::source::RateLimitedSource;
use crate::carrier::Carrier;
use crate::dial::{Dial, DialError};
use crate::path::PathStatus;
use crate::ssh::UserPrompts;

/// Dials with another dialer. All carriers together stay below the limits. While these are paused, every dial fails.
pub struct RateLimitedDial {
    inner: Arc<dyn Dial>,
    limits: Arc<RateLimits>,
}

impl RateLimitedDial {
    /// Returns a dialer with these limits.
    pub fn new(inner: Arc<dyn Dial>, limits: Arc<RateLimits>) -> RateLimitedDial {
        RateLimitedDial { inner, limits }
    }

    fn limited(&self, dial: impl Fn(&dyn Dial) -> Result<Carrier, DialError>) -> Result<Carrier, DialError> {
        if self.limits.is_paused() {
            return Err(DialError::Paused);
        }
        let Carrier { source, sink, closer, peer } = dial(&*self.inner)?;
        // Direct calls move no bytes.
        if sink.in_process().is_some() {
            return Ok(Carrier { source, sink, closer, peer });
        }
        Ok(Carrier {
            source: Box::new(RateLimitedSource::new(source, Arc::clone(&self.limits), closer.clone())),
            sink: Box::new(RateLimitedSink::new(sink, Arc::clone(&self.limits), closer.clone())),
            closer,
            peer,
        })
    }
}

impl Dial for RateLimitedDial {
    fn dial(&self) -> Result<Carrier, DialError> {
        self.limited(|inner| inner.dial())
    }

    fn dial_again(&self) -> Result<Carrier, DialError> {
        self.limited(|inner| inner.dial_again())
    }

    fn dial_additional(&self) -> Result<Carrier, DialError> {
        self.limited(|inner| inner.dial_additional())
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
