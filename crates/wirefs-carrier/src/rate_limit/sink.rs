//! A sink whose frames wait for the limit of sending.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use wirefs_op::Frame;

use super::RateLimits;
use crate::carrier::{FrameSink, SendProgress};
use crate::closer::Closer;
use crate::gauge::Gauge;
use crate::in_process::InProcessPeer;
use crate::lost::CarrierLost;

/// INVARIANT: `admitted` has frames only after the inner sink was blocked; the limit counts them as sent.
pub(super) struct RateLimitedSink {
    inner: Box<dyn FrameSink>,
    limits: Arc<RateLimits>,
    closer: Closer,
    admitted: VecDeque<Frame>,
    /// The inner sink was blocked, not the limit.
    is_inner_blocked: bool,
}

impl RateLimitedSink {
    pub(super) fn new(inner: Box<dyn FrameSink>, limits: Arc<RateLimits>, closer: Closer) -> Self {
        Self { inner, limits, closer, admitted: VecDeque::new(), is_inner_blocked: false }
    }

    fn send_admitted(&mut self) -> Result<SendProgress, CarrierLost> {
        let progress = self.inner.send(&mut self.admitted)?;
        self.is_inner_blocked = progress == SendProgress::Blocked;
        Ok(progress)
    }
}

impl FrameSink for RateLimitedSink {
    fn send(&mut self, queue: &mut VecDeque<Frame>) -> Result<SendProgress, CarrierLost> {
        if self.limits.up.rate().is_none() {
            self.admitted.append(queue);
            return self.send_admitted();
        }
        loop {
            // Also without a frame: the inner sink may hold the rest of one.
            if self.send_admitted()? == SendProgress::Blocked {
                return Ok(SendProgress::Blocked);
            }
            if queue.is_empty() {
                return Ok(SendProgress::Drained);
            }
            if !self.limits.up.is_open() {
                return Ok(SendProgress::Blocked);
            }
            if let Some(frame) = queue.pop_front() {
                self.limits.up.subtract(frame.wire_len());
                self.admitted.push_back(frame);
            }
        }
    }

    fn wait_writable(&mut self, timeout: Duration) -> Result<bool, CarrierLost> {
        if self.is_inner_blocked {
            return self.inner.wait_writable(timeout);
        }
        let is_open = self.limits.up.wait(timeout, || !self.closer.is_closed());
        if self.closer.is_closed() { Err(CarrierLost::Closed) } else { Ok(is_open) }
    }

    fn gauge(&self) -> Option<Gauge> {
        self.inner.gauge()
    }

    fn in_process(&self) -> Option<Arc<dyn InProcessPeer>> {
        self.inner.in_process()
    }
}
