//! The receiving direction of a stream.

use bytes::Bytes;
use rustix::event::PollFlags;
use rustix::io::Errno;

use super::{Stream, wake};
use crate::assembly::Assembly;
use crate::carrier::FrameSource;
use crate::closer::Closer;
use crate::lost::CarrierLost;

pub(crate) struct StreamSource {
    stream: Stream,
    closer: Closer,
    assembly: Assembly,
}

impl StreamSource {
    pub(crate) fn new(stream: Stream, closer: Closer) -> Self {
        Self::resume(stream, closer, Assembly::new())
    }

    /// Continues where another reader of the same stream stopped.
    pub(crate) fn resume(stream: Stream, closer: Closer, assembly: Assembly) -> Self {
        Self { stream, closer, assembly }
    }

    /// Reads once, blocking if necessary. Returns 0 at the end of the stream.
    fn fill(&mut self) -> Result<usize, CarrierLost> {
        loop {
            // A blocking socket needs no poll; a pipe can be woken by the poll only.
            if let Some(end) = self.stream.wake() {
                wake::wait(self.stream.fd(), PollFlags::IN, Some(end), None)?;
            }
            if self.closer.is_closed() {
                return Err(CarrierLost::Closed);
            }
            let room = self.assembly.room();
            let room_bytes = room.len();
            match rustix::io::read(self.stream.fd(), room) {
                Ok(count) => {
                    self.assembly.filled(count);
                    self.assembly.record_read(count, room_bytes);
                    return Ok(count);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    wake::wait(self.stream.fd(), PollFlags::IN, self.stream.wake(), None)?;
                }
                Err(_) if self.closer.is_closed() => return Err(CarrierLost::Closed),
                Err(errno) => return Err(CarrierLost::Io(errno.into())),
            }
        }
    }
}

impl FrameSource for StreamSource {
    fn receive(&mut self) -> Result<Option<Bytes>, CarrierLost> {
        loop {
            if let Some(body) = self.assembly.next_body()? {
                return Ok(Some(body));
            }
            if self.fill()? == 0 {
                if self.closer.is_closed() {
                    return Err(CarrierLost::Closed);
                }
                return self.assembly.end();
            }
        }
    }
}
