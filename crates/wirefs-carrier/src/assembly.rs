//! Cuts a byte stream into message bodies.

mod buffer;

use bytes::Bytes;
use wirefs_op::limits::{MESSAGE_BYTES_MAX, MESSAGE_BYTES_MIN};

use crate::limits::{READ_BYTES_MAX, READ_BYTES_MIN};
use crate::lost::{CarrierLost, PeerFault};
use buffer::Buffer;

/// What stands before each body: its size, this word included, in bytes.
pub(crate) const SIZE_WORD_BYTES: usize = 4;

/// The receive buffer of one carrier, and what has arrived in it but is not yet taken.
#[derive(Debug)]
pub(crate) struct Assembly {
    buffer: Buffer,
    /// How much usually comes at once. Follows the traffic, so that an idle carrier holds little memory.
    read_bytes: usize,
    fault: Option<PeerFault>,
}

impl Assembly {
    pub(crate) fn new() -> Self {
        Self { buffer: Buffer::new(), read_bytes: READ_BYTES_MIN, fault: None }
    }

    /// Takes the next complete message's body.
    ///
    /// # Errors
    /// The size word is outside what a message can be; every later call says so again.
    pub(crate) fn next_body(&mut self) -> Result<Option<Bytes>, PeerFault> {
        let Some(size) = self.front_size()? else { return Ok(None) };
        if self.buffer.pending().len() < size {
            return Ok(None);
        }
        self.buffer.skip(SIZE_WORD_BYTES);
        Ok(Some(self.buffer.take(size - SIZE_WORD_BYTES)))
    }

    fn front_size(&mut self) -> Result<Option<usize>, PeerFault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let Some(word) = self.buffer.pending().first_chunk::<SIZE_WORD_BYTES>() else { return Ok(None) };
        let size = Self::size_of(*word);
        self.fault = size.err();
        size.map(Some)
    }

    /// The size of the message that begins with this word, in bytes.
    ///
    /// # Errors
    /// No message has that size.
    pub(crate) fn size_of(word: [u8; SIZE_WORD_BYTES]) -> Result<usize, PeerFault> {
        let size_bytes = u32::from_le_bytes(word);
        let size = size_bytes as usize;
        let what = if size < MESSAGE_BYTES_MIN {
            "is too small to be one"
        } else if size > MESSAGE_BYTES_MAX {
            "is too large"
        } else {
            return Ok(size);
        };
        Err(PeerFault { what, size_bytes })
    }

    /// Room for the next bytes: at least for the rest of the message at the front.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        let wanted = self.missing().max(self.read_bytes / 4);
        self.buffer.room(wanted, self.read_bytes)
    }

    /// Bytes that the message at the front still lacks, at least one.
    fn missing(&mut self) -> usize {
        match self.front_size() {
            Ok(Some(size)) => size.saturating_sub(self.buffer.pending().len()).max(1),
            Ok(None) | Err(_) => 1,
        }
    }

    /// Takes bytes that another buffer received.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let wanted = self.missing().max(rest.len());
            let room = self.buffer.room(wanted, self.read_bytes);
            let (now, later) = rest.split_at_checked(room.len()).unwrap_or((rest, &[]));
            if let Some(place) = room.get_mut(..now.len()) {
                place.copy_from_slice(now);
            }
            self.buffer.filled(now.len());
            rest = later;
        }
    }

    /// Whether [`next_body`](Self::next_body) has something to say.
    pub(crate) fn has_body(&mut self) -> bool {
        match self.front_size() {
            Ok(Some(size)) => self.buffer.pending().len() >= size,
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// Notes that `count` bytes came into the room.
    pub(crate) fn filled(&mut self, count: usize) {
        self.buffer.filled(count);
    }

    /// Notes that `count` bytes came at once when `room` could have.
    pub(crate) fn came(&mut self, count: usize, room: usize) {
        if count == room {
            self.read_bytes = (self.read_bytes * 2).min(READ_BYTES_MAX);
        } else if count < self.read_bytes / 8 {
            self.read_bytes = (self.read_bytes / 2).max(READ_BYTES_MIN);
        }
    }

    /// Whether nothing waits for its rest.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.pending().is_empty()
    }

    /// Says what the end of the stream means here.
    pub(crate) fn end(&self) -> Result<Option<Bytes>, CarrierLost> {
        match self.buffer.pending().len() {
            0 => Ok(None),
            received_bytes => Err(CarrierLost::Cut { received_bytes }),
        }
    }
}

#[cfg(test)]
mod tests;
