//! The sending direction.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use wirefs_op::Frame;

use super::handle::ConnectionHandle;
use crate::carrier::{FrameSink, SendProgress};
use crate::lost::CarrierLost;

pub(super) struct EtherSink {
    handle: Arc<ConnectionHandle>,
    /// The rest of a frame of which the circuit took a part.
    partial: VecDeque<Bytes>,
}

impl EtherSink {
    pub(super) fn new(handle: Arc<ConnectionHandle>) -> Self {
        Self { handle, partial: VecDeque::new() }
    }
}

impl FrameSink for EtherSink {
    fn send(&mut self, queue: &mut VecDeque<Frame>) -> Result<SendProgress, CarrierLost> {
        if queue.is_empty() && self.partial.is_empty() {
            return Ok(SendProgress::Drained);
        }
        loop {
            let progress =
                self.handle.engine().with(|mux, _| mux.write(self.handle.group, &mut self.partial, queue))?;
            // The data just sent may have freed space.
            let is_writable = progress == SendProgress::Blocked
                && matches!(self.handle.engine().lock().writable(self.handle.group), Some(Ok(())));
            if !is_writable {
                return Ok(progress);
            }
        }
    }

    fn wait_writable(&mut self, timeout: Duration) -> Result<bool, CarrierLost> {
        let group = self.handle.group;
        let room =
            self.handle.engine().wait(group, Some(Instant::now() + timeout), |mux, _| mux.writable(group));
        match room {
            Some(Ok(())) => Ok(true),
            Some(Err(lost)) => Err(lost),
            None => Ok(false),
        }
    }
}
