//! Collecting one message.

use crate::Frame;
use crate::limits::MESSAGE_BYTES_MAX;
use bytes::Bytes;

const _: () = assert!(MESSAGE_BYTES_MAX < u32::MAX as usize, "size[4] carries a message's length");

/// Collects one message: its fields in one buffer, its trailing data beside it.
#[derive(Debug)]
pub struct Writer {
    head: Vec<u8>,
    data: Bytes,
}

impl Writer {
    /// Starts a message of this type with this tag.
    pub fn message(code: u8, tag: u16) -> Writer {
        let mut head = Vec::with_capacity(96);
        head.extend_from_slice(&[0; 4]);
        head.push(code);
        head.extend_from_slice(&tag.to_le_bytes());
        Writer { head, data: Bytes::new() }
    }

    /// Starts a bare value, without the message's fixed fields.
    pub fn bare() -> Writer {
        Writer { head: Vec::new(), data: Bytes::new() }
    }

    /// Ends the message: fills in its size.
    pub fn finish(mut self) -> Frame {
        let size = u32::try_from(self.head.len() + self.data.len()).unwrap_or(u32::MAX);
        if let Some(word) = self.head.get_mut(..4) {
            word.copy_from_slice(&size.to_le_bytes());
        }
        Frame { head: self.head, data: self.data }
    }

    /// Ends a bare value.
    pub fn into_bytes(self) -> Vec<u8> {
        self.head
    }

    /// Bytes written so far, the data not counted.
    pub fn len(&self) -> usize {
        self.head.len()
    }

    /// Whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.head.is_empty()
    }

    /// Takes back what was written past the first `len` bytes.
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

    /// Writes `len[2] bytes`. INVARIANT: callers hold strings within the limits, all of which fit 16 bits.
    pub fn string(&mut self, bytes: &[u8]) {
        debug_assert!(bytes.len() <= usize::from(u16::MAX));
        self.raw(&(bytes.len() as u16).to_le_bytes());
        self.raw(bytes);
    }
}
