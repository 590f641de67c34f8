//! The sink and the frames that have left the queue for it. Only its current owner may write.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use wirefs_op::Frame;

use crate::carrier::{FrameSink, SendProgress};
use crate::lost::CarrierLost;

pub(super) struct Writer {
    sink: Box<dyn FrameSink>,
    pub(super) urgent: VecDeque<Frame>,
    /// At most one batch, so that urgent frames overtake the others.
    pub(super) bulk: VecDeque<Frame>,
    /// Bytes in both queues.
    pub(super) queued_bytes: usize,
    /// The sink holds part of a frame; another call must write it.
    blocked: bool,
}

/// The result of one write.
pub(super) struct Step {
    pub(super) frames: u64,
    pub(super) bytes: u64,
    pub(super) blocked: bool,
}

impl Writer {
    pub(super) fn new(sink: Box<dyn FrameSink>) -> Self {
        Self { sink, urgent: VecDeque::new(), bulk: VecDeque::new(), queued_bytes: 0, blocked: false }
    }

    pub(super) fn is_drained(&self) -> bool {
        self.urgent.is_empty() && self.bulk.is_empty() && !self.blocked
    }

    /// Offers the sink the queued frames, urgent ones first.
    pub(super) fn write(&mut self) -> Result<Step, CarrierLost> {
        let frames = self.urgent.len() + self.bulk.len();
        let mut progress = self.sink.send(&mut self.urgent)?;
        if progress == SendProgress::Drained {
            progress = self.sink.send(&mut self.bulk)?;
        }
        self.blocked = progress == SendProgress::Blocked;
        let left = self.urgent.iter().chain(&self.bulk).map(Frame::wire_len).sum::<usize>();
        let bytes = self.queued_bytes - left;
        self.queued_bytes = left;
        Ok(Step {
            frames: (frames - self.urgent.len() - self.bulk.len()) as u64,
            bytes: bytes as u64,
            blocked: self.blocked,
        })
    }

    /// When the sink has something to free.
    pub(super) fn free_due(&self) -> Option<Instant> {
        self.sink.free_due()
    }

    /// Lets the sink free what it has not used until `now`.
    pub(super) fn free_unused(&mut self, now: Instant) -> Result<(), CarrierLost> {
        self.blocked = self.sink.free_unused(now)? == SendProgress::Blocked;
        Ok(())
    }

    pub(super) fn wait_writable(&mut self, timeout: Duration) -> Result<bool, CarrierLost> {
        self.sink.wait_writable(timeout)
    }
}
