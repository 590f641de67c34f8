//! Splits a byte stream into message bodies.

mod buffer;

use bytes::Bytes;
use wirefs_op::limits::{MESSAGE_BYTES_MAX, MESSAGE_BYTES_MIN};

use crate::limits::{READ_BYTES_MAX, READ_BYTES_MIN};
use crate::lost::{CarrierLost, FramingError};
use buffer::Buffer;

/// Bytes of the length prefix of each body; the length includes it.
pub(crate) const SIZE_WORD_BYTES: usize = 4;

/// The receive buffer of one carrier, with the bytes that have arrived and are not yet taken.
#[derive(Debug)]
pub(crate) struct Assembly {
    buffer: Buffer,
    /// The size of the next read. Follows the traffic, so that an idle carrier holds little memory.
    read_bytes: usize,
    fault: Option<FramingError>,
}

impl Assembly {
    pub(crate) fn new() -> Self {
        Self { buffer: Buffer::new(), read_bytes: READ_BYTES_MIN, fault: None }
    }

    /// Returns the next complete body.
    ///
    /// # Errors
    /// The length is not that of a valid message; every later call returns the same error.
    pub(crate) fn next_body(&mut self) -> Result<Option<Bytes>, FramingError> {
        let Some(size) = self.first_size()? else { return Ok(None) };
        if self.buffer.pending().len() < size {
            return Ok(None);
        }
        self.buffer.skip(SIZE_WORD_BYTES);
        Ok(Some(self.buffer.take(size - SIZE_WORD_BYTES)))
    }

    fn first_size(&mut self) -> Result<Option<usize>, FramingError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let Some(word) = self.buffer.pending().first_chunk::<SIZE_WORD_BYTES>() else { return Ok(None) };
        let size = Self::size_of(*word);
        self.fault = size.err();
        size.map(Some)
    }

    /// Returns the length of the message with this prefix, in bytes.
    ///
    /// # Errors
    /// No valid message has that length.
    pub(crate) fn size_of(word: [u8; SIZE_WORD_BYTES]) -> Result<usize, FramingError> {
        let size_bytes = u32::from_le_bytes(word);
        let size = size_bytes as usize;
        let what = if size < MESSAGE_BYTES_MIN {
            "is too small to be one"
        } else if size > MESSAGE_BYTES_MAX {
            "is too large"
        } else {
            return Ok(size);
        };
        Err(FramingError { what, size_bytes })
    }

    /// Returns space for the next bytes: at least for the rest of the first message.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        let wanted = self.missing().max(self.read_bytes / 4);
        self.buffer.room(wanted, self.read_bytes)
    }

    /// Returns the missing bytes of the first message, at least one.
    fn missing(&mut self) -> usize {
        match self.first_size() {
            Ok(Some(size)) => size.saturating_sub(self.buffer.pending().len()).max(1),
            Ok(None) | Err(_) => 1,
        }
    }

    /// Appends bytes that were received in another buffer.
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

    /// Returns whether [`next_body`](Self::next_body) has a body or an error.
    pub(crate) fn has_body(&mut self) -> bool {
        match self.first_size() {
            Ok(Some(size)) => self.buffer.pending().len() >= size,
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// Records that `count` bytes were read into the space.
    pub(crate) fn filled(&mut self, count: usize) {
        self.buffer.filled(count);
    }

    /// Records that a read returned `count` bytes for `room` bytes of space.
    pub(crate) fn record_read(&mut self, count: usize, room: usize) {
        if count == room {
            self.read_bytes = (self.read_bytes * 2).min(READ_BYTES_MAX);
        } else if count < self.read_bytes / 8 {
            self.read_bytes = (self.read_bytes / 2).max(READ_BYTES_MIN);
        }
    }

    /// Returns whether no incomplete message is buffered.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.pending().is_empty()
    }

    /// Returns the result of `receive` at the end of the stream.
    pub(crate) fn end(&self) -> Result<Option<Bytes>, CarrierLost> {
        match self.buffer.pending().len() {
            0 => Ok(None),
            received_bytes => Err(CarrierLost::Cut { received_bytes }),
        }
    }
}

#[cfg(test)]
mod tests;
