//! The sending direction of TLS.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::SendFlags;
use wirefs_op::Frame;

use super::cipher::Outgoing;
use super::seal::Frames;
use super::shared::{Shared, State};
use crate::carrier::{FrameSink, SendProgress};
use crate::closer::Closer;
use crate::congestion;
use crate::gauge::Gauge;
use crate::lost::CarrierLost;
use crate::stream::wait;

pub(super) struct TlsSink {
    shared: Arc<Shared>,
    closer: Closer,
    /// Records being written to the kernel. They are sent before records that are encrypted later.
    writing: Outgoing,
    record: Vec<u8>,
    was_crowded: bool,
}

impl TlsSink {
    pub(super) fn new(shared: Arc<Shared>, closer: Closer) -> Self {
        Self { shared, closer, writing: Outgoing::default(), record: Vec::new(), was_crowded: false }
    }

    /// Encrypts the next batch into `writing`. Returns `false` if there is nothing to send.
    fn encrypt(&mut self, queue: &mut VecDeque<Frame>) -> Result<bool, CarrierLost> {
        let mut state = self.shared.lock();
        let State { session, outgoing, leftover, .. } = &mut *state;
        if !queue.is_empty() {
            let mut frames = Frames { queue, record: &mut self.record };
            let sealed = session.seal(&mut frames, leftover, outgoing);
            sealed.map_err(|error| self.shared.explain(error))?;
        }
        std::mem::swap(&mut self.writing, outgoing);
        let is_unsent = !self.writing.is_empty();
        self.shared.is_unsent.store(is_unsent, Ordering::SeqCst);
        Ok(is_unsent)
    }
}

impl FrameSink for TlsSink {
    fn send(&mut self, queue: &mut VecDeque<Frame>) -> Result<SendProgress, CarrierLost> {
        loop {
            if self.writing.is_empty() {
                if self.closer.is_closed() {
                    return Err(CarrierLost::Closed);
                }
                if !self.encrypt(queue)? {
                    return Ok(SendProgress::Drained);
                }
            }
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match rustix::net::send(&self.shared.socket, self.writing.rest(), flags) {
                Ok(count) => {
                    self.writing.advance(count);
                    if self.writing.is_empty() {
                        self.shared.is_unsent.store(false, Ordering::SeqCst);
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if !std::mem::replace(&mut self.was_crowded, true) {
                        congestion::restore_default(&self.shared.socket);
                    }
                    return Ok(SendProgress::Blocked);
                }
                Err(_) if self.closer.is_closed() => return Err(CarrierLost::Closed),
                Err(Errno::PIPE) => return Err(CarrierLost::PeerClosed),
                Err(errno) => return Err(CarrierLost::Io(errno.into())),
            }
        }
    }

    fn gauge(&self) -> Option<Gauge> {
        Some(Gauge::new(Arc::clone(&self.shared.socket)))
    }

    fn wait_writable(&mut self, timeout: Duration) -> Result<bool, CarrierLost> {
        let ready = wait(&self.shared.socket, PollFlags::OUT, None, Some(timeout))?;
        if self.closer.is_closed() { Err(CarrierLost::Closed) } else { Ok(ready) }
    }
}
