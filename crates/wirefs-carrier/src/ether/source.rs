//! The receiving direction.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Buf, Bytes};

use super::lane::Taken;
use super::owner::Handle;
use crate::assembly::{Assembly, SIZE_WORD_BYTES};
use crate::carrier::FrameSource;
use crate::lost::{CarrierLost, PeerFault};

pub(super) struct EtherSource {
    handle: Arc<Handle>,
    /// What came and was not looked at.
    pieces: VecDeque<Bytes>,
    /// Messages that came in several pieces.
    assembly: Assembly,
}

impl EtherSource {
    /// Goes on behind what was taken already.
    pub(super) fn new(handle: Arc<Handle>, pieces: VecDeque<Bytes>) -> Self {
        Self { handle, pieces, assembly: Assembly::new() }
    }

    /// The next message that is there as a whole.
    fn next_body(&mut self) -> Result<Option<Bytes>, PeerFault> {
        loop {
            if let Some(body) = self.assembly.next_body()? {
                return Ok(Some(body));
            }
            let Some(mut piece) = self.pieces.pop_front() else {
                return Ok(None);
            };
            // Most are in one packet, and need no assembly.
            let size = piece.first_chunk().and_then(|word| Assembly::size_of(*word).ok());
            match size.filter(|size| self.assembly.is_empty() && *size <= piece.len()) {
                Some(size) => {
                    let mut message = piece.split_to(size);
                    if !piece.is_empty() {
                        self.pieces.push_front(piece);
                    }
                    message.advance(SIZE_WORD_BYTES);
                    return Ok(Some(message));
                }
                None => self.assembly.append(&piece),
            }
        }
    }
}

/// Waits until something can be taken, at most until `until`.
pub(super) fn take(handle: &Handle, pieces: &mut VecDeque<Bytes>, until: Option<Instant>) -> Option<Taken> {
    handle.engine().wait(handle.group, until, |machine, _| match machine.both(handle.group) {
        Some((lane, node)) => lane.take(node, pieces),
        None => Some(Taken::Gone(CarrierLost::Closed)),
    })
}

impl FrameSource for EtherSource {
    fn receive(&mut self) -> Result<Option<Bytes>, CarrierLost> {
        loop {
            if let Some(body) = self.next_body()? {
                return Ok(Some(body));
            }
            match take(&self.handle, &mut self.pieces, None).unwrap_or_else(Handle::silent) {
                Taken::Bytes => {}
                Taken::End => return self.assembly.end(),
                Taken::Gone(CarrierLost::PeerClosed) if !self.assembly.is_empty() => {
                    return self.assembly.end();
                }
                Taken::Gone(lost) => return Err(lost),
            }
        }
    }
}
