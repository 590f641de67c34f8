//! Cuts a byte stream into message bodies.

use bytes::{Buf, Bytes, BytesMut};
use wirefs_op::limits::{MESSAGE_BYTES_MAX, MESSAGE_BYTES_MIN};

use crate::limits::{COPY_BYTES_MAX, READ_BYTES_MIN, RECEIVE_BYTES_MAX};
use crate::lost::{CarrierLost, PeerFault};

const SIZE_WORD_BYTES: usize = 4;

/// The receive buffer of one carrier, and what has arrived in it but is not yet taken.
///
/// INVARIANT: the buffer's capacity never exceeds `RECEIVE_BYTES_MAX` plus one message.
#[derive(Debug)]
pub(crate) struct Assembly {
    buffer: BytesMut,
    /// How much to ask the carrier for at once. Follows the traffic, so that an idle carrier holds little memory.
    read_bytes: usize,
    fault: Option<PeerFault>,
}

impl Assembly {
    pub(crate) fn new() -> Self {
        Self { buffer: BytesMut::new(), read_bytes: READ_BYTES_MIN, fault: None }
    }

    /// Takes the next complete message's body.
    ///
    /// # Errors
    /// The size word is outside what a message can be; every later call says so again.
    pub(crate) fn next_body(&mut self) -> Result<Option<Bytes>, PeerFault> {
        let Some(size) = self.front_size()? else { return Ok(None) };
        if self.buffer.len() < size {
            return Ok(None);
        }
        if size <= COPY_BYTES_MAX {
            // A small body must not keep the whole receive buffer alive, and the buffer stays free for reuse.
            let body = self.buffer.get(SIZE_WORD_BYTES..size).map(Bytes::copy_from_slice).unwrap_or_default();
            self.buffer.advance(size);
            return Ok(Some(body));
        }
        let mut message = self.buffer.split_to(size);
        message.advance(SIZE_WORD_BYTES);
        Ok(Some(message.freeze()))
    }

    fn front_size(&mut self) -> Result<Option<usize>, PeerFault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let Some(word) = self.buffer.first_chunk::<SIZE_WORD_BYTES>() else { return Ok(None) };
        let size_bytes = u32::from_le_bytes(*word);
        let size = size_bytes as usize;
        let what = if size < MESSAGE_BYTES_MIN {
            "is too small to be one"
        } else if size > MESSAGE_BYTES_MAX {
            "is too large"
        } else {
            return Ok(Some(size));
        };
        let fault = PeerFault { what, size_bytes };
        self.fault = Some(fault);
        Err(fault)
    }

    /// The buffer with room for the next bytes: at least for the rest of the message at its front.
    pub(crate) fn room(&mut self) -> &mut BytesMut {
        let spare = self.buffer.capacity() - self.buffer.len();
        if spare < self.missing().max(self.read_bytes / 4) {
            self.grow(1);
        }
        &mut self.buffer
    }

    /// Bytes that the message at the front still lacks.
    fn missing(&mut self) -> usize {
        match self.front_size() {
            Ok(Some(size)) => size.saturating_sub(self.buffer.len()),
            Ok(None) | Err(_) => 0,
        }
    }

    /// Makes room for `at_least` bytes, the rest of the message at the front, and as much as usually comes at once. Moves
    /// at most one unfinished message.
    fn grow(&mut self, at_least: usize) {
        let wanted = at_least.max(self.missing()).max(self.read_bytes);
        if !self.buffer.try_reclaim(wanted) {
            let mut larger = BytesMut::with_capacity(self.buffer.len() + wanted);
            larger.extend_from_slice(&self.buffer);
            self.buffer = larger;
        }
    }

    /// Takes bytes that another buffer received.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        if self.buffer.capacity() - self.buffer.len() < bytes.len() {
            self.grow(bytes.len());
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Whether [`next_body`](Self::next_body) has something to say.
    pub(crate) fn has_body(&mut self) -> bool {
        match self.front_size() {
            Ok(Some(size)) => self.buffer.len() >= size,
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// Notes that `count` bytes came when there was room for `room`.
    pub(crate) fn took(&mut self, count: usize, room: usize) {
        if count == room {
            self.read_bytes = (self.read_bytes * 2).min(RECEIVE_BYTES_MAX);
        } else if count < self.read_bytes / 8 {
            self.read_bytes = (self.read_bytes / 2).max(READ_BYTES_MIN);
        }
    }

    /// Says what the end of the stream means here.
    pub(crate) fn end(&self) -> Result<Option<Bytes>, CarrierLost> {
        if self.buffer.is_empty() {
            Ok(None)
        } else {
            Err(CarrierLost::Cut { received_bytes: self.buffer.len() })
        }
    }
}

#[cfg(test)]
mod tests;
