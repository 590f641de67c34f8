//! The encoding of values in blocks: variable-length integers in canonical (shortest) form, bounds-checked.

#[cfg(test)]
mod tests;

use crate::id::{BlockId, WriterId};
use bytes::Bytes;
use wirefs_op::{Kind, Timestamp};

/// Bytes that do not decode: the store damaged them, or the writer was faulty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("corrupt block: {what} at byte {at}")]
pub(crate) struct Corrupt {
    /// The kind of damage.
    pub what: &'static str,
    /// The offset in the block or value, in bytes.
    pub at: usize,
}

/// Builds the encoding of a block or value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn new() -> Writer {
        Writer::default()
    }

    pub(crate) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// LEB128: seven bits per byte, the lowest first; the high bit marks continuation.
    pub(crate) fn number(&mut self, number: u64) {
        let mut rest = number;
        while rest > 0x7f {
            self.bytes.push(rest as u8 & 0x7f | 0x80);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
    }

    /// Zigzag encoding: small numbers of either sign are short.
    pub(crate) fn signed(&mut self, number: i64) {
        self.number((number << 1 ^ number >> 63) as u64);
    }

    /// A length prefix and the bytes.
    pub(crate) fn string(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.raw(bytes);
    }

    /// An id as the difference from the preceding one, since adjacent ids were mostly allocated together.
    pub(crate) fn id(&mut self, id: BlockId, before: &mut u64) {
        self.signed(id.counter().wrapping_sub(*before) as i64);
        self.number(u64::from(id.node().0));
        *before = id.counter();
    }

    pub(crate) fn lone_id(&mut self, id: Option<BlockId>) {
        self.number(id.map_or(0, BlockId::bits));
    }

    pub(crate) fn timestamp(&mut self, time: Timestamp) {
        self.signed(time.secs);
        self.number(u64::from(time.nanos));
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn finish(self) -> Bytes {
        Bytes::from(self.bytes)
    }
}

/// Decodes a block or value.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    bytes: Bytes,
    at: usize,
}

impl Reader {
    pub(crate) fn new(bytes: Bytes) -> Reader {
        Reader { bytes, at: 0 }
    }

    pub(crate) fn corrupt(&self, what: &'static str) -> Corrupt {
        Corrupt { what, at: self.at }
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Corrupt> {
        let byte = self.bytes.get(self.at).copied().ok_or(self.corrupt("a truncated field"))?;
        self.at += 1;
        Ok(byte)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Corrupt> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return Err(self.corrupt("a number of more than 64 bits"));
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                let is_shortest = byte != 0 || shift == 0;
                return is_shortest
                    .then_some(number)
                    .ok_or(self.corrupt("a number not in its shortest encoding"));
            }
        }
        Err(self.corrupt("a number of more than 64 bits"))
    }

    pub(crate) fn signed(&mut self) -> Result<i64, Corrupt> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Reads a number and converts it to a narrower type.
    pub(crate) fn fitting<T: TryFrom<u64>>(&mut self) -> Result<T, Corrupt> {
        let number = self.number()?;
        T::try_from(number).map_err(|_| self.corrupt("a number out of range"))
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<Bytes, Corrupt> {
        if len > self.remaining() {
            return Err(self.corrupt("a truncated field"));
        }
        let taken = self.bytes.slice(self.at..self.at + len);
        self.at += len;
        Ok(taken)
    }

    pub(crate) fn rest(&mut self) -> Bytes {
        let rest = self.bytes.slice(self.at..);
        self.at = self.bytes.len();
        rest
    }

    pub(crate) fn string(&mut self, max: usize) -> Result<Bytes, Corrupt> {
        let len = self.fitting::<usize>()?;
        if len > max {
            return Err(self.corrupt("a string longer than its limit"));
        }
        self.take(len)
    }

    pub(crate) fn id(&mut self, before: &mut u64) -> Result<BlockId, Corrupt> {
        let counter = before.wrapping_add(self.signed()? as u64);
        let node = WriterId(self.fitting()?);
        let id = BlockId::new(counter, node).ok_or(self.corrupt("an invalid block id"))?;
        *before = counter;
        Ok(id)
    }

    pub(crate) fn lone_id(&mut self) -> Result<Option<BlockId>, Corrupt> {
        match self.number()? {
            0 => Ok(None),
            bits => BlockId::from_bits(bits).map(Some).ok_or(self.corrupt("an invalid block id")),
        }
    }

    pub(crate) fn timestamp(&mut self) -> Result<Timestamp, Corrupt> {
        let (secs, nanos) = (self.signed()?, self.fitting::<u32>()?);
        if nanos >= 1_000_000_000 {
            return Err(self.corrupt("nanoseconds out of range"));
        }
        Ok(Timestamp { secs, nanos })
    }

    pub(crate) fn kind(&mut self) -> Result<Kind, Corrupt> {
        let code = self.byte()?;
        Kind::from_code(code).ok_or(self.corrupt("an unknown file type"))
    }

    pub(crate) fn end(&self) -> Result<(), Corrupt> {
        if self.remaining() == 0 { Ok(()) } else { Err(self.corrupt("trailing bytes")) }
    }
}
