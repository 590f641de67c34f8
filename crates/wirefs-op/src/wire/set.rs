//! The encoding of changes of attributes: a byte of bits, then the fields whose bits are set.

#[cfg(test)]
mod tests;

use crate::stat::{SetStat, SetTime};
use crate::time::Timestamp;
use crate::wire::{Malformed, Reader, Wire, Writer};

/// The bits in the first byte of a [`SetStat`], one for each field that follows; the two `Now` bits have no
/// field.
mod set_bits {
    pub(super) const MODE: u8 = 1;
    pub(super) const UID: u8 = 2;
    pub(super) const GID: u8 = 4;
    pub(super) const SIZE: u8 = 8;
    pub(super) const ATIME: u8 = 16;
    pub(super) const MTIME: u8 = 32;
    pub(super) const ATIME_NOW: u8 = 64;
    pub(super) const MTIME_NOW: u8 = 128;
}

impl Wire for SetStat {
    fn put(&self, writer: &mut Writer) {
        use set_bits::*;
        let bit = |present: bool, bit: u8| if present { bit } else { 0 };
        let time = |time: Option<SetTime>, at: u8, now: u8| match time {
            None => 0,
            Some(SetTime::Now) => now,
            Some(SetTime::At(_)) => at,
        };
        let bits = bit(self.mode.is_some(), MODE)
            | bit(self.uid.is_some(), UID)
            | bit(self.gid.is_some(), GID)
            | bit(self.size.is_some(), SIZE)
            | time(self.atime, ATIME, ATIME_NOW)
            | time(self.mtime, MTIME, MTIME_NOW);
        bits.put(writer);
        for word in [self.mode, self.uid, self.gid].into_iter().flatten() {
            word.put(writer);
        }
        if let Some(size) = self.size {
            size.put(writer);
        }
        for time in [self.atime, self.mtime].into_iter().flatten() {
            if let SetTime::At(at) = time {
                at.put(writer);
            }
        }
    }

    fn take(reader: &mut Reader) -> Result<Self, Malformed> {
        use set_bits::*;
        fn field<T: Wire>(reader: &mut Reader, bits: u8, bit: u8) -> Result<Option<T>, Malformed> {
            if bits & bit == 0 { Ok(None) } else { T::take(reader).map(Some) }
        }
        fn time(reader: &mut Reader, bits: u8, at: u8, now: u8) -> Result<Option<SetTime>, Malformed> {
            match (bits & at != 0, bits & now != 0) {
                (false, false) => Ok(None),
                (false, true) => Ok(Some(SetTime::Now)),
                (true, false) => Ok(Some(SetTime::At(Timestamp::take(reader)?))),
                (true, true) => Err(reader.malformed("a time that is both explicit and now")),
            }
        }
        let bits = u8::take(reader)?;
        Ok(SetStat {
            mode: field(reader, bits, MODE)?,
            uid: field(reader, bits, UID)?,
            gid: field(reader, bits, GID)?,
            size: field(reader, bits, SIZE)?,
            atime: time(reader, bits, ATIME, ATIME_NOW)?,
            mtime: time(reader, bits, MTIME, MTIME_NOW)?,
        })
    }
}
