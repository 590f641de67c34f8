//! The encoder's buffer of a message.

use crate::Frame;
use crate::limits::MESSAGE_BYTES_MAX;
use bytes::Bytes;

const _: () = assert!(MESSAGE_BYTES_MAX < u32::MAX as usize, "size[4] carries a message's length");

/// Builds a message: its fields in one buffer, its trailing data separately.
#[derive(Debug)]
pub struct Writer {
    head: Vec<u8>,
    data: Bytes,
}

impl Writer {
    /// Starts a message with this type and tag.
    pub fn message(code: u8, tag: u16) -> Writer {
        let mut head = Vec::with_capacity(96);
        head.extend_from_slice(&[0; 4]);
        head.push(code);
        head.extend_from_slice(&tag.to_le_bytes());
        Writer { head, data: Bytes::new() }
    }

    /// Starts a value without the message's fixed fields.
    pub fn bare() -> Writer {
        Writer { head: Vec::new(), data: Bytes::new() }
    }

    /// Finishes the message: sets its size.
    pub fn finish(mut self) -> Frame {
        let size = u32::try_from(self.head.len() + self.data.len()).unwrap_or(u32::MAX);
        if let Some(word) = self.head.get_mut(..4) {
            word.copy_from_slice(&size.to_le_bytes());
        }
        Frame { head: self.head, data: self.data }
    }

    /// Finishes a bare value and returns its bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.head
    }

    /// Returns the number of bytes written, without the data.
    pub fn len(&self) -> usize {
        self.head.len()
    }

    /// Returns true if nothing was written.
    pub fn is_empty(&self) -> bool {
        self.head.is_empty()
    }

    /// Removes the bytes written after the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.head.truncate(len);
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.head.extend_from_slice(bytes);
    }

    /// Ends the message with these bytes, shared and not copied.
    pub(super) fn trail(&mut self, data: Bytes) {
        debug_assert!(self.data.is_empty(), "data is a message's last field");
        self.data = data;
    }

    /// Writes `len[2] bytes`. INVARIANT: strings are within their limits, all of which fit into 16 bits.
    pub fn string(&mut self, bytes: &[u8]) {
        debug_assert!(bytes.len() <= usize::from(u16::MAX));
        self.raw(&(bytes.len() as u16).to_le_bytes());
        self.raw(bytes);
    }
}
