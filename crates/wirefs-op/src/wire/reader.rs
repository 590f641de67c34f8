//! Walking over one received message.

use crate::wire::{Malformed, Wire};
use bytes::Bytes;

/// Walks over one received message.
#[derive(Debug)]
pub struct Reader {
    body: Bytes,
    at: usize,
}

impl Reader {
    /// Reads a message body: what follows the size word.
    pub fn new(body: Bytes) -> Reader {
        Reader { body, at: 0 }
    }

    /// A complaint about the present place.
    pub fn malformed(&self, what: &'static str) -> Malformed {
        Malformed { what, at: self.at }
    }

    /// Bytes not read yet.
    pub fn remaining(&self) -> usize {
        self.body.len() - self.at
    }

    /// The next `len` bytes, shared with the message.
    ///
    /// # Errors
    /// The message ends before.
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

    /// `len[2] bytes`, at most `max` long.
    ///
    /// # Errors
    /// Longer, or the message ends before.
    pub fn string(&mut self, max: usize) -> Result<Bytes, Malformed> {
        let len = usize::from(u16::take(self)?);
        if len > max {
            return Err(self.malformed("string over its limit"));
        }
        self.bytes(len)
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// Bytes are left over.
    pub fn end(&self) -> Result<(), Malformed> {
        if self.remaining() == 0 { Ok(()) } else { Err(self.malformed("bytes left over")) }
    }
}
