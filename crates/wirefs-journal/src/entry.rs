//! The entries of a segment, after its header: changes, and notes about them.
//!
//! ```text
//!  mark[4]  length[4]  sum[4]  kind[1]  number[8]  body[length]
//! ```
//! The sum covers the header's sum, the entry's offset in the segment, and all fields but mark and sum. So an entry that was copied to
//! another place or segment is not accepted.

use crate::limits::BODY_BYTES_MAX;
use crate::outcome::ChangeOutcome;
use bytes::{Buf, BufMut, Bytes};
use wirefs_log::{Checksum, Crc32c, Form, ReadOutcome};
use wirefs_op::FileId;

/// The first bytes of an entry.
pub(crate) const MARK: [u8; 4] = [0xa7, b'J', 0x0d, 0x9c];
/// Bytes of kind and number.
const FIELDS_BYTES: usize = 9;
const FORM: Form<Crc32c> = Form::new(BODY_BYTES_MAX).marked(&MARK, FIELDS_BYTES);
/// The length of an entry before its body, in bytes.
pub const HEAD_BYTES: usize = FORM.head_bytes() + FIELDS_BYTES;

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

/// The position of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The sum of the segment's header.
    pub salt: u32,
    /// The offset of the entry's first byte in the segment.
    pub offset: u64,
}

impl Spot {
    fn seed(self) -> Crc32c {
        let mut sum = Crc32c::default();
        sum.add(&self.salt.to_le_bytes());
        sum.add(&self.offset.to_le_bytes());
        sum
    }
}

/// Returns the head of an entry at a position; the caller writes the body after it.
pub fn head(kind: EntryKind, number: u64, body: &[&[u8]], spot: Spot) -> [u8; HEAD_BYTES] {
    let (kind, number) = ([kind as u8], number.to_le_bytes());
    let fields: [&[u8]; 2] = [&kind, &number];
    let mut head = [0; HEAD_BYTES];
    let mut to = head.as_mut_slice();
    FORM.put_head(&mut to, spot.seed(), fields.into_iter().chain(body.iter().copied()));
    fields.into_iter().for_each(|field| to.put_slice(field));
    head
}

/// Decodes the entry at a position. Returns it with its length in bytes, or `None` if no whole entry is there.
pub(crate) fn at(segment: &Bytes, spot: Spot) -> Option<(Entry, usize)> {
    let start = usize::try_from(spot.offset).ok()?;
    let ReadOutcome::Record { contents: mut body, .. } = FORM.read(segment.get(start..)?, spot.seed()) else {
        return None;
    };
    let (kind, number) = (body.try_get_u8().ok()?, body.try_get_u64_le().ok()?);
    let entry = match EntryKind::of(kind)? {
        EntryKind::Change => Entry::Change(Record { number, body: segment.slice_ref(body) }),
        EntryKind::Answered if body.is_empty() => Entry::Answered(number),
        EntryKind::Durable if body.is_empty() => Entry::Durable(number),
        EntryKind::Outcome => Entry::Outcome(number, ChangeOutcome::decode(body)?),
        EntryKind::Exclusive if body.is_empty() => Entry::Exclusive(number),
        EntryKind::LatestTime if body.is_empty() => Entry::LatestTime(number),
        EntryKind::Synced if body.len() == FileId::BYTES => {
            Entry::Synced(number, FileId::take_bytes(&mut &*body)?)
        }
        EntryKind::Answered
        | EntryKind::Durable
        | EntryKind::Exclusive
        | EntryKind::LatestTime
        | EntryKind::Synced => return None,
    };
    Some((entry, HEAD_BYTES + body.len()))
}
