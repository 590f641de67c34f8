//! Attributes encoded as a difference to the previous ones: a number with one bit per field that differs from
//! its prediction, then those fields.
//!
//! A rule for each field predicts it from the previous record and from the fields decoded before it. For most
//! entries of a directory, only the identifying fields differ.

#[cfg(test)]
mod tests;

use super::number::{fold, put_number, take_number, unfold};
use crate::stat::{FileId, Kind, Stat};
use crate::time::Timestamp;
use crate::wire::{Malformed, Reader, Wire};

/// A field of the attributes. Its bit is its index in [`Field::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Generation,
    Version,
    Ino,
    Size,
    ChangedSecs,
    ChangedNanos,
    ModifiedSecs,
    ModifiedNanos,
    AccessedSecs,
    AccessedNanos,
    Kind,
    Mode,
    Links,
    Blocks,
    Uid,
    Gid,
    Device,
    BlockSize,
    Fs,
}

/// The encoding of a field that differs from its prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The given number of low bytes of the value, for values that are nearly random.
    Plain(usize),
    /// The difference to the prediction.
    Difference,
}

/// The attributes before the first record of a message.
pub(super) const NOTHING: Stat = Stat::blank(FileId { fs: 0, ino: 0, generation: 0 }, Kind::File);

impl Field {
    /// The fields that differ most often come first, so that their bits fit into two bytes.
    const ALL: [Field; 19] = [
        Field::Generation,
        Field::Version,
        Field::Ino,
        Field::Size,
        Field::ChangedSecs,
        Field::ChangedNanos,
        Field::ModifiedSecs,
        Field::ModifiedNanos,
        Field::AccessedSecs,
        Field::AccessedNanos,
        Field::Kind,
        Field::Mode,
        Field::Links,
        Field::Blocks,
        Field::Uid,
        Field::Gid,
        Field::Device,
        Field::BlockSize,
        Field::Fs,
    ];

    fn form(self) -> Form {
        match self {
            Field::Version => Form::Plain(8),
            Field::Generation | Field::ChangedNanos | Field::ModifiedNanos | Field::AccessedNanos => {
                Form::Plain(4)
            }
            Field::Kind => Form::Plain(1),
            Field::Ino
            | Field::Size
            | Field::ChangedSecs
            | Field::ModifiedSecs
            | Field::AccessedSecs
            | Field::Mode
            | Field::Links
            | Field::Blocks
            | Field::Uid
            | Field::Gid
            | Field::Device
            | Field::BlockSize
            | Field::Fs => Form::Difference,
        }
    }

    /// Returns the value of the field as 64 bits.
    fn of(self, stat: &Stat) -> u64 {
        match self {
            Field::Generation => stat.id.generation.into(),
            Field::Version => stat.version,
            Field::Ino => stat.id.ino,
            Field::Size => stat.size,
            Field::ChangedSecs => stat.ctime.secs as u64,
            Field::ChangedNanos => stat.ctime.nanos.into(),
            Field::ModifiedSecs => stat.mtime.secs as u64,
            Field::ModifiedNanos => stat.mtime.nanos.into(),
            Field::AccessedSecs => stat.atime.secs as u64,
            Field::AccessedNanos => stat.atime.nanos.into(),
            Field::Kind => (stat.kind as u8).into(),
            Field::Mode => stat.mode.into(),
            Field::Links => stat.nlink.into(),
            Field::Blocks => stat.blocks,
            Field::Uid => stat.uid.into(),
            Field::Gid => stat.gid.into(),
            Field::Device => stat.rdev.into(),
            Field::BlockSize => stat.blksize.into(),
            Field::Fs => stat.id.fs.into(),
        }
    }

    /// Returns the prediction of the field. Uses only those fields of `stat` that precede this one.
    fn expected(self, before: &Stat, stat: &Stat) -> u64 {
        match self {
            Field::ModifiedSecs => expected_mtime(before, stat).secs as u64,
            Field::ModifiedNanos => expected_mtime(before, stat).nanos.into(),
            Field::AccessedSecs => expected_atime(before, stat).secs as u64,
            Field::AccessedNanos => expected_atime(before, stat).nanos.into(),
            // Whole pages of 4096 bytes, in units of 512 bytes.
            Field::Blocks => stat.size.div_ceil(4096) * 8,
            Field::Generation
            | Field::Version
            | Field::Ino
            | Field::Size
            | Field::ChangedSecs
            | Field::ChangedNanos
            | Field::Kind
            | Field::Mode
            | Field::Links
            | Field::Uid
            | Field::Gid
            | Field::Device
            | Field::BlockSize
            | Field::Fs => self.of(before),
        }
    }

    /// Sets the field. Returns `None` if the value is out of its range.
    fn set(self, stat: &mut Stat, value: u64) -> Option<()> {
        let word = || u32::try_from(value).ok();
        let nanos = || word().filter(|nanos| *nanos < 1_000_000_000);
        match self {
            Field::Generation => stat.id.generation = word()?,
            Field::Version => stat.version = value,
            Field::Ino => stat.id.ino = value,
            Field::Size => stat.size = value,
            Field::ChangedSecs => stat.ctime.secs = value as i64,
            Field::ChangedNanos => stat.ctime.nanos = nanos()?,
            Field::ModifiedSecs => stat.mtime.secs = value as i64,
            Field::ModifiedNanos => stat.mtime.nanos = nanos()?,
            Field::AccessedSecs => stat.atime.secs = value as i64,
            Field::AccessedNanos => stat.atime.nanos = nanos()?,
            Field::Kind => stat.kind = u8::try_from(value).ok().and_then(Kind::from_code)?,
            Field::Mode => stat.mode = word()?,
            Field::Links => stat.nlink = word()?,
            Field::Blocks => stat.blocks = value,
            Field::Uid => stat.uid = word()?,
            Field::Gid => stat.gid = word()?,
            Field::Device => stat.rdev = word()?,
            Field::BlockSize => stat.blksize = word()?,
            Field::Fs => stat.id.fs = word()?,
        }
        Some(())
    }
}

/// Times that were equal in the previous record are predicted to be equal again, as for files that were
/// written once.
fn expected_mtime(before: &Stat, stat: &Stat) -> Timestamp {
    if before.mtime == before.ctime { stat.ctime } else { before.mtime }
}

fn expected_atime(before: &Stat, stat: &Stat) -> Timestamp {
    if before.atime == before.mtime {
        stat.mtime
    } else if before.atime == before.ctime {
        stat.ctime
    } else {
        before.atime
    }
}

/// Appends `stat` without its two flags, as a difference to `before`.
pub(super) fn put_attributes(bytes: &mut Vec<u8>, before: &Stat, stat: &Stat) {
    let fields = Field::ALL.map(|field| (field, field.of(stat), field.expected(before, stat)));
    let bits =
        fields.iter().rev().fold(0, |bits, (_, value, expected)| bits << 1 | u64::from(value != expected));
    put_number(bytes, bits);
    for (field, value, expected) in fields.into_iter().filter(|(_, value, expected)| value != expected) {
        match field.form() {
            Form::Plain(len) => bytes.extend_from_slice(value.to_le_bytes().get(..len).unwrap_or_default()),
            Form::Difference => put_number(bytes, fold(value.wrapping_sub(expected) as i64)),
        }
    }
}

/// Reads attributes that are encoded as a difference to `before`, without their flags.
///
/// # Errors
/// Fails if the bytes are not valid attributes in their only encoding.
pub(super) fn take_attributes(reader: &mut Reader, before: &Stat) -> Result<Stat, Malformed> {
    let bits = take_number(reader)?;
    if bits >> Field::ALL.len() != 0 {
        return Err(reader.malformed("unknown bits in attributes"));
    }
    let mut stat = NOTHING;
    for (at, field) in Field::ALL.into_iter().enumerate() {
        let expected = field.expected(before, &stat);
        let value = if bits >> at & 1 == 0 { expected } else { take_field(reader, field, expected)? };
        field.set(&mut stat, value).ok_or(reader.malformed("an attribute out of its range"))?;
    }
    Ok(stat)
}

fn take_field(reader: &mut Reader, field: Field, expected: u64) -> Result<u64, Malformed> {
    let value = match field.form() {
        Form::Plain(len) => {
            let mut value = 0;
            for shift in 0..len {
                value |= u64::from(u8::take(reader)?) << (8 * shift);
            }
            value
        }
        Form::Difference => expected.wrapping_add(unfold(take_number(reader)?) as u64),
    };
    if value == expected {
        Err(reader.malformed("an explicit attribute equal to its prediction"))
    } else {
        Ok(value)
    }
}
