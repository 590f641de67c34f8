//! The entries of a segment, after its header: changes, and notes about them.
//!
//! ```text
//!  mark[4]  length[4]  sum[4]  kind[1]  number[8]  body[length]
//! ```
//! The sum covers the header's sum, the entry's offset in the segment, and all fields but mark and sum. So an entry that was copied to
//! another place or segment is not accepted.

use crate::limits::BODY_BYTES_MAX;
use crate::outcome::ChangeOutcome;
use crate::sum::Sum;
use bytes::{Buf, Bytes};
use wirefs_op::FileId;

/// The first bytes of an entry.
pub(crate) const MARK: [u8; 4] = [0xa7, b'J', 0x0d, 0x9c];
/// The length of an entry before its body, in bytes.
pub const HEAD_BYTES: usize = 21;
/// Bytes of the id of a file.
const SYNCED_BYTES: usize = 16;

/// A change: its number, and its message without size word, with the tag NOTAG.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The number under which it is sent, from 1 on.
    pub number: u64,
    /// The message.
    pub body: Bytes,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A change.
    Change(Record),
    /// The server has answered all changes below this number.
    Answered(u64),
    /// The server's disk has all changes below this number.
    Durable(u64),
    /// The outcome of the change with this number.
    Outcome(u64, ChangeOutcome),
    /// No other client came between the changes from this number on; [`NOT_EXCLUSIVE`]: others are there.
    Exclusive(u64),
    /// The latest change time that the server reported of objects of these changes, in nanoseconds since 1970, by its clock.
    LatestTime(u64),
    /// The server's disk has the contents that the changes below this number left in this file.
    Synced(u64, FileId),
}

/// The number in [`Entry::Exclusive`] when the session is not exclusive.
pub const NOT_EXCLUSIVE: u64 = u64::MAX;

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EntryKind {
    /// [`Entry::Change`].
    Change = 1,
    /// [`Entry::Answered`].
    Answered = 2,
    /// [`Entry::Durable`].
    Durable = 3,
    /// [`Entry::Outcome`].
    Outcome = 4,
    /// [`Entry::Exclusive`].
    Exclusive = 5,
    /// [`Entry::LatestTime`].
    LatestTime = 6,
    /// [`Entry::Synced`].
    Synced = 7,
}

impl EntryKind {
    fn of(code: u8) -> Option<EntryKind> {
        use EntryKind::{Answered, Change, Durable, Exclusive, LatestTime, Outcome, Synced};
        [Change, Answered, Durable, Outcome, Exclusive, LatestTime, Synced]
            .into_iter()
            .find(|kind| *kind as u8 == code)
    }
}

/// Returns the body of an [`Entry::Synced`].
pub fn synced(file: FileId) -> [u8; SYNCED_BYTES] {
    let mut bytes = [0; SYNCED_BYTES];
    let fields = file.fs.to_le_bytes().into_iter().chain(file.ino.to_le_bytes());
    bytes.iter_mut().zip(fields.chain(file.generation.to_le_bytes())).for_each(|(to, from)| *to = from);
    bytes
}

/// Decodes the body of an [`Entry::Synced`]; `None` if it has another length.
fn synced_file(mut body: &[u8]) -> Option<FileId> {
    let file = FileId {
        fs: body.try_get_u32_le().ok()?,
        ino: body.try_get_u64_le().ok()?,
        generation: body.try_get_u32_le().ok()?,
    };
    body.is_empty().then_some(file)
}

/// The position of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The sum of the segment's header.
    pub salt: u32,
    /// The offset of the entry's first byte in the segment.
    pub offset: u64,
}

/// Returns the head of an entry at a position; the caller writes the body behind it.
pub fn head(kind: EntryKind, number: u64, body: &[&[u8]], spot: Spot) -> [u8; HEAD_BYTES] {
    let length = body.iter().map(|part| part.len()).sum::<usize>() as u32;
    let sum = sum_of(kind as u8, number, length, body, spot);
    let mut head = [0; HEAD_BYTES];
    let fields = MARK.into_iter().chain(length.to_le_bytes()).chain(sum.to_le_bytes());
    let fields = fields.chain([kind as u8]).chain(number.to_le_bytes());
    head.iter_mut().zip(fields).for_each(|(to, from)| *to = from);
    head
}

fn sum_of(kind: u8, number: u64, length: u32, body: &[&[u8]], spot: Spot) -> u32 {
    let mut sum = Sum::new();
    sum.add(&spot.salt.to_le_bytes());
    sum.add(&spot.offset.to_le_bytes());
    sum.add(&length.to_le_bytes());
    sum.add(&[kind]);
    sum.add(&number.to_le_bytes());
    body.iter().for_each(|part| sum.add(part));
    sum.value()
}

/// Decodes the entry at a position. Returns it with its length in bytes, or `None` if no whole entry is there.
pub(crate) fn at(segment: &Bytes, spot: Spot) -> Option<(Entry, usize)> {
    let start = usize::try_from(spot.offset).ok()?;
    let mut head = segment.get(start..)?.get(..HEAD_BYTES)?;
    if !head.starts_with(&MARK) {
        return None;
    }
    head.advance(MARK.len());
    let (length, expected) = (head.get_u32_le(), head.get_u32_le());
    let (kind, number) = (head.get_u8(), head.get_u64_le());
    let bytes = usize::try_from(length).ok().filter(|bytes| *bytes <= BODY_BYTES_MAX)?;
    let (begin, end) = (start + HEAD_BYTES, start + HEAD_BYTES + bytes);
    let body = segment.get(begin..end)?;
    if sum_of(kind, number, length, &[body], spot) != expected {
        return None;
    }
    let entry = match EntryKind::of(kind)? {
        EntryKind::Change => Entry::Change(Record { number, body: segment.slice(begin..end) }),
        EntryKind::Answered if bytes == 0 => Entry::Answered(number),
        EntryKind::Durable if bytes == 0 => Entry::Durable(number),
        EntryKind::Outcome => Entry::Outcome(number, ChangeOutcome::decode(segment.get(begin..end)?)?),
        EntryKind::Exclusive if bytes == 0 => Entry::Exclusive(number),
        EntryKind::LatestTime if bytes == 0 => Entry::LatestTime(number),
        EntryKind::Synced => Entry::Synced(number, synced_file(segment.get(begin..end)?)?),
        EntryKind::Answered | EntryKind::Durable | EntryKind::Exclusive | EntryKind::LatestTime => {
            return None;
        }
    };
    Some((entry, HEAD_BYTES + bytes))
}
