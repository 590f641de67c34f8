//! A source whose messages wait for the limit of receiving.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::RateLimits;
use crate::carrier::FrameSource;
use crate::closer::Closer;
use crate::lost::CarrierLost;

/// The length prefix of a message.
const PREFIX_BYTES: usize = 4;

/// The peer's data waits in the kernel's buffers meanwhile, whose flow control stops the peer.
pub(super) struct RateLimitedSource {
    inner: Box<dyn FrameSource>,
    limits: Arc<RateLimits>,
    closer: Closer,
}

impl RateLimitedSource {
    pub(super) fn new(inner: Box<dyn FrameSource>, limits: Arc<RateLimits>, closer: Closer) -> Self {
        Self { inner, limits, closer }
    }
}

impl FrameSource for RateLimitedSource {
    fn receive(&mut self) -> Result<Option<Bytes>, CarrierLost> {
        // The inner source reports the reason why a carrier is closed.
        let is_open = || !self.closer.is_closed();
        while !self.limits.down.wait(Duration::from_secs(5), is_open) && is_open() {}
        let body = self.inner.receive()?;
        if let Some(body) = &body {
            self.limits.down.subtract(PREFIX_BYTES + body.len());
        }
        Ok(body)
    }
}
