//! What stands in a segment behind its header: changes, and notes about them.
//!
//! ```text
//!  mark[4]  length[4]  sum[4]  kind[1]  number[8]  body[length]
//! ```
//! The sum covers the header's sum, where in the segment the entry stands, and all of the entry but mark and sum: bytes that
//! came to another place, or from another segment, are not believed.

use crate::limits::BODY_BYTES_MAX;
use crate::sum::Sum;
use crate::told::Told;
use bytes::{Buf, Bytes};
use wirefs_op::FileId;

/// What an entry begins with.
pub(crate) const MARK: [u8; 4] = [0xa7, b'J', 0x0d, 0x9c];
/// Bytes of an entry before its body.
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
    Record(Record),
    /// The server has answered all changes below this number.
    Answered(u64),
    /// The server's disk has all changes below this number.
    Forget(u64),
    /// What the client was told of the change with this number.
    Told(u64, Told),
    /// From the change with this number on nobody else has come between; [`NOT_ALONE`]: others do.
    Alone(u64),
    /// The latest time of change that the server has told of what these changes did, in nanoseconds since 1970, by its clock.
    Seen(u64),
    /// The server's disk has the contents that the changes below this number have left in this file.
    Synced(u64, FileId),
}

/// To [`Entry::Alone`].
pub const NOT_ALONE: u64 = u64::MAX;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EntryKind {
    /// [`Entry::Record`].
    Record = 1,
    /// [`Entry::Answered`].
    Answered = 2,
    /// [`Entry::Forget`].
    Forget = 3,
    /// [`Entry::Told`].
    Told = 4,
    /// [`Entry::Alone`].
    Alone = 5,
    /// [`Entry::Seen`].
    Seen = 6,
    /// [`Entry::Synced`].
    Synced = 7,
}

impl EntryKind {
    fn of(code: u8) -> Option<EntryKind> {
        use EntryKind::{Alone, Answered, Forget, Record, Seen, Synced, Told};
        [Record, Answered, Forget, Told, Alone, Seen, Synced].into_iter().find(|kind| *kind as u8 == code)
    }
}

/// The body of [`Entry::Synced`].
pub fn synced(file: FileId) -> [u8; SYNCED_BYTES] {
    let mut bytes = [0; SYNCED_BYTES];
    let fields = file.fs.to_le_bytes().into_iter().chain(file.ino.to_le_bytes());
    bytes.iter_mut().zip(fields.chain(file.generation.to_le_bytes())).for_each(|(to, from)| *to = from);
    bytes
}

/// `None`: these are not the bytes of any.
fn file(mut body: &[u8]) -> Option<FileId> {
    let file = FileId {
        fs: body.try_get_u32_le().ok()?,
        ino: body.try_get_u64_le().ok()?,
        generation: body.try_get_u32_le().ok()?,
    };
    body.is_empty().then_some(file)
}

/// Where in which segment an entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The sum of the segment's header.
    pub salt: u32,
    /// The entry's first byte.
    pub offset: u64,
}

/// The head of an entry at a spot; its body, given in parts, follows it.
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

/// The entry at a spot of a segment and its length, in bytes; none where there is no whole one.
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
        EntryKind::Record => Entry::Record(Record { number, body: segment.slice(begin..end) }),
        EntryKind::Answered if bytes == 0 => Entry::Answered(number),
        EntryKind::Forget if bytes == 0 => Entry::Forget(number),
        EntryKind::Told => Entry::Told(number, Told::decode(segment.get(begin..end)?)?),
        EntryKind::Alone if bytes == 0 => Entry::Alone(number),
        EntryKind::Seen if bytes == 0 => Entry::Seen(number),
        EntryKind::Synced => Entry::Synced(number, file(segment.get(begin..end)?)?),
        EntryKind::Answered | EntryKind::Forget | EntryKind::Alone | EntryKind::Seen => return None,
    };
    Some((entry, HEAD_BYTES + bytes))
}
