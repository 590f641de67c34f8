//! The sending direction of a stream.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags};
use wirefs_op::Frame;

use super::{Stream, wake};
use crate::carrier::{FrameSink, SendProgress};
use crate::closer::Closer;
use crate::congestion;
use crate::gauge::Gauge;
use crate::limits::WRITE_SLICES_MAX;
use crate::lost::CarrierLost;

/// INVARIANT: `offset` is 0 without a `partial` frame, and below its length with one.
pub(crate) struct StreamSink {
    stream: Stream,
    closer: Closer,
    partial: Option<Frame>,
    offset: usize,
    was_crowded: bool,
}

impl StreamSink {
    pub(crate) fn new(stream: Stream, closer: Closer) -> Self {
        Self { stream, closer, partial: None, offset: 0, was_crowded: false }
    }

    fn write(&self, slices: &[IoSlice<'_>]) -> Result<usize, Errno> {
        match &self.stream {
            Stream::Socket(fd) => rustix::net::sendmsg(
                fd,
                slices,
                &mut SendAncillaryBuffer::default(),
                SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
            ),
            Stream::Pipe(fd, _) => rustix::io::writev(fd, slices),
        }
    }

    /// Records that `count` more bytes are written.
    fn advance(&mut self, queue: &mut VecDeque<Frame>, count: usize) {
        let mut left = self.offset + count;
        self.offset = 0;
        loop {
            let Some(frame) = self.partial.take().or_else(|| queue.pop_front()) else { return };
            match left.checked_sub(frame.wire_len()) {
                Some(rest) => left = rest,
                None if left == 0 => {
                    queue.push_front(frame);
                    return;
                }
                None => {
                    self.partial = Some(frame);
                    self.offset = left;
                    return;
                }
            }
        }
    }
}

/// Gathers the rest of the partial frame and the frames after it.
fn gather<'a>(
    partial: Option<&'a Frame>,
    offset: usize,
    queue: &'a VecDeque<Frame>,
    slices: &mut [IoSlice<'a>; WRITE_SLICES_MAX],
) -> usize {
    let mut skip = offset;
    let mut count = 0;
    let parts = partial.into_iter().chain(queue).flat_map(|frame| [frame.head.as_slice(), &frame.data]);
    for part in parts {
        let rest = part.get(skip..).unwrap_or_default();
        skip = skip.saturating_sub(part.len());
        if rest.is_empty() {
            continue;
        }
        let Some(slot) = slices.get_mut(count) else { break };
        *slot = IoSlice::new(rest);
        count += 1;
    }
    count
}

impl FrameSink for StreamSink {
    fn send(&mut self, queue: &mut VecDeque<Frame>) -> Result<SendProgress, CarrierLost> {
        loop {
            let written = {
                let mut slices = [IoSlice::new(&[]); WRITE_SLICES_MAX];
                let count = gather(self.partial.as_ref(), self.offset, queue, &mut slices);
                if count == 0 {
                    queue.clear();
                    return Ok(SendProgress::Drained);
                }
                self.write(slices.get(..count).unwrap_or_default())
            };
            match written {
                Ok(count) => self.advance(queue, count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if !std::mem::replace(&mut self.was_crowded, true) {
                        congestion::restore_default(self.stream.fd());
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
        match &self.stream {
            Stream::Socket(fd) => Some(Gauge::new(Arc::clone(fd))),
            Stream::Pipe(..) => None,
        }
    }

    fn wait_writable(&mut self, timeout: Duration) -> Result<bool, CarrierLost> {
        let ready = wake::wait(self.stream.fd(), PollFlags::OUT, self.stream.wake(), Some(timeout))?;
        if self.closer.is_closed() { Err(CarrierLost::Closed) } else { Ok(ready) }
    }
}
