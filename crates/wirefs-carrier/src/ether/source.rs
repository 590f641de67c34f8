//! The receiving direction.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Buf, Bytes};

use super::connection::ReadOutcome;
use super::handle::ConnectionHandle;
use crate::assembly::{Assembly, SIZE_WORD_BYTES};
use crate::carrier::FrameSource;
use crate::lost::{CarrierLost, FramingError};

pub(super) struct EtherSource {
    handle: Arc<ConnectionHandle>,
    /// Received data that is not parsed yet.
    pieces: VecDeque<Bytes>,
    /// Messages that arrived in several pieces.
    assembly: Assembly,
}

impl EtherSource {
    /// Starts with data that was already taken.
    pub(super) fn new(handle: Arc<ConnectionHandle>, pieces: VecDeque<Bytes>) -> Self {
        Self { handle, pieces, assembly: Assembly::new() }
    }

    /// Returns the next complete message.
    fn next_body(&mut self) -> Result<Option<Bytes>, FramingError> {
        loop {
            if let Some(body) = self.assembly.next_body()? {
                return Ok(Some(body));
            }
            let Some(mut piece) = self.pieces.pop_front() else {
                return Ok(None);
            };
            // Most messages are in one packet, and need no assembly.
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

/// Waits until data can be taken, at most until `until`.
pub(super) fn take(
    handle: &ConnectionHandle,
    pieces: &mut VecDeque<Bytes>,
    until: Option<Instant>,
) -> Option<ReadOutcome> {
    handle.engine().wait(handle.group, until, |mux, _| match mux.connection_and_node(handle.group) {
        Some((connection, node)) => connection.take(node, pieces),
        None => Some(ReadOutcome::Lost(CarrierLost::Closed)),
    })
}

impl FrameSource for EtherSource {
    fn receive(&mut self) -> Result<Option<Bytes>, CarrierLost> {
        loop {
            if let Some(body) = self.next_body()? {
                return Ok(Some(body));
            }
            match take(&self.handle, &mut self.pieces, None).unwrap_or_else(ConnectionHandle::timed_out) {
                ReadOutcome::Bytes => {}
                ReadOutcome::End => return self.assembly.end(),
                ReadOutcome::Lost(CarrierLost::PeerClosed) if !self.assembly.is_empty() => {
                    return self.assembly.end();
                }
                ReadOutcome::Lost(lost) => return Err(lost),
            }
        }
    }
}
