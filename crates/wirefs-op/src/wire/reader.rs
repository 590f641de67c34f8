//! The decoder's position in a received message.

use crate::wire::{Malformed, Wire};
use bytes::Bytes;

/// Reads a received message.
#[derive(Debug)]
pub struct Reader {
    body: Bytes,
    at: usize,
}

impl Reader {
    /// Creates a reader of a message without its size word.
    pub fn new(body: Bytes) -> Reader {
        Reader { body, at: 0 }
    }

    /// Creates an error at the current position.
    pub fn malformed(&self, what: &'static str) -> Malformed {
        Malformed { what, at: self.at }
    }

    /// Returns the number of bytes not read yet.
    pub fn remaining(&self) -> usize {
        self.body.len() - self.at
    }

    /// Returns the next `len` bytes, shared with the message.
    ///
    /// # Errors
    /// Fails if the message ends before.
    pub fn bytes(&mut self, len: usize) -> Result<Bytes, Malformed> {
        if len > self.remaining() {
            return Err(self.malformed("ends within a field"));
        }
        let bytes = self.body.slice(self.at..self.at + len);
        self.at += len;
        Ok(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let bytes = self.body.get(self.at..self.at + N).and_then(|bytes| bytes.try_into().ok());
        let array = bytes.ok_or(self.malformed("ends within a field"))?;
        self.at += N;
        Ok(array)
    }

    /// Reads `len[2] bytes`, at most `max` bytes.
    ///
    /// # Errors
    /// Fails if the string is longer or the message ends before.
    pub fn string(&mut self, max: usize) -> Result<Bytes, Malformed> {
        let len = usize::from(u16::take(self)?);
        if len > max {
            return Err(self.malformed("string over its limit"));
        }
        self.bytes(len)
    }

    /// Checks that the message ends here.
    ///
    /// # Errors
    /// Fails if bytes remain.
    pub fn end(&self) -> Result<(), Malformed> {
        if self.remaining() == 0 { Ok(()) } else { Err(self.malformed("bytes left over")) }
    }
}
