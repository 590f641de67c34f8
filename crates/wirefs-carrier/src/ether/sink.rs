//! The sending direction.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use wirefs_op::Frame;

use super::owner::Handle;
use crate::carrier::{FrameSink, SendProgress};
use crate::lost::CarrierLost;

pub(super) struct EtherSink {
    handle: Arc<Handle>,
    /// The rest of a frame that the circuit took a part of.
    partial: VecDeque<Bytes>,
}

impl EtherSink {
    pub(super) fn new(handle: Arc<Handle>) -> Self {
        Self { handle, partial: VecDeque::new() }
    }
}

impl FrameSink for EtherSink {
    fn send(&mut self, queue: &mut VecDeque<Frame>) -> Result<SendProgress, CarrierLost> {
        if queue.is_empty() && self.partial.is_empty() {
            return Ok(SendProgress::Drained);
        }
        loop {
            let progress = self
                .handle
                .engine()
                .with(|machine, _| machine.write(self.handle.group, &mut self.partial, queue))?;
            // What was just sent may have made room for more.
            let is_roomy = progress == SendProgress::Blocked
                && matches!(self.handle.engine().lock().room(self.handle.group), Some(Ok(())));
            if !is_roomy {
                return Ok(progress);
            }
        }
    }

    fn wait_writable(&mut self, timeout: Duration) -> Result<bool, CarrierLost> {
        let group = self.handle.group;
        let room = self
            .handle
            .engine()
            .wait(group, Some(Instant::now() + timeout), |machine, _| machine.room(group));
        match room {
            Some(Ok(())) => Ok(true),
            Some(Err(lost)) => Err(lost),
            None => Ok(false),
        }
    }
}
