//! The records of a log.
//!
//! ```text
//! head_sum[4]  kind[1]  len[4]  id[8]  body_sum[4]  body[len]        numbers with the low byte first
//! ```
//! `head_sum` is of the segment's number and of all behind it up to the body. The body of a root says how much of its
//! segment was synced when it was written (in bytes, 8 of them; roots without one say nothing): a record before that place
//! that is not whole was damaged later, while one behind it may never have come to the disk.

use super::sum::sum;
use bytes::Bytes;
use wirefs_blocks::id::BlockId;

/// A record without its body, in bytes.
pub(super) const HEAD_BYTES: usize = 21;
/// The most ids that one record lets go of.
pub(super) const FREED_MAX: usize = 4096;
/// The longest body, in bytes.
pub(super) const BODY_BYTES_MAX: usize = 64 * 1024;
/// The body of a root, in bytes.
const SYNCED_BYTES: usize = 8;
/// The record of a root, in bytes.
pub(super) const ROOT_BYTES: usize = HEAD_BYTES + SYNCED_BYTES;

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The first of a segment: its body is the version of the format, and the payload.
    Begin,
    /// A block.
    Block,
    /// Another root: its body is how much of the segment was synced.
    Root,
    /// Blocks that are let go of: their ids.
    Free,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Begin, Kind::Block, Kind::Root, Kind::Free];

    fn code(self) -> u8 {
        match self {
            Kind::Begin => 1,
            Kind::Block => 2,
            Kind::Root => 3,
            Kind::Free => 4,
        }
    }

    fn of(code: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

/// What stands before a record's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    pub(super) len: u32,
    /// Of a block, and of the root.
    pub(super) id: u64,
    pub(super) body_sum: u32,
}

impl Head {
    fn tail(&self) -> [u8; HEAD_BYTES - 4] {
        let mut bytes = [0; HEAD_BYTES - 4];
        let parts = [
            &[self.kind.code()][..],
            &self.len.to_le_bytes(),
            &self.id.to_le_bytes(),
            &self.body_sum.to_le_bytes(),
        ];
        for (to, from) in bytes.iter_mut().zip(parts.concat()) {
            *to = from;
        }
        bytes
    }

    /// Decodes what stands before a body; `None` when it is not whole.
    pub(super) fn decode(segment: u64, bytes: &[u8; HEAD_BYTES]) -> Option<Head> {
        let (head_sum, tail) = bytes.split_at_checked(4)?;
        if sum(&[&segment.to_le_bytes(), tail]).to_le_bytes() != head_sum {
            return None;
        }
        let number = |at: usize, len: usize| {
            let bytes = tail.get(at..at + len)?.iter().rev();
            Some(bytes.fold(0_u64, |number, byte| number << 8 | u64::from(*byte)))
        };
        let len = u32::try_from(number(1, 4)?).ok()?;
        let head = Head {
            kind: Kind::of(*tail.first()?)?,
            len,
            id: number(5, 8)?,
            body_sum: u32::try_from(number(13, 4)?).ok()?,
        };
        (len as usize <= BODY_BYTES_MAX).then_some(head)
    }

    /// Whether this is the body.
    pub(super) fn is_body(&self, body: &[u8]) -> bool {
        body.len() == self.len as usize && sum(&[body]) == self.body_sum
    }

    /// The length of the whole record, in bytes.
    pub(super) fn record_bytes(&self) -> u64 {
        HEAD_BYTES as u64 + u64::from(self.len)
    }
}

/// Appends a record.
pub(super) fn put(to: &mut Vec<u8>, segment: u64, kind: Kind, id: u64, body: &[u8]) {
    let len = u32::try_from(body.len()).unwrap_or(u32::MAX);
    let tail = Head { kind, len, id, body_sum: sum(&[body]) }.tail();
    to.extend_from_slice(&sum(&[&segment.to_le_bytes(), &tail]).to_le_bytes());
    to.extend_from_slice(&tail);
    to.extend_from_slice(body);
}

/// The body of a root.
pub(super) fn synced(bytes: u64) -> Bytes {
    Bytes::copy_from_slice(&bytes.to_le_bytes())
}

/// How much of its segment was synced, if these bytes are the whole record of a root.
pub(super) fn synced_of_root(segment: u64, record: &[u8]) -> Option<u64> {
    let (head, body) = record.split_first_chunk::<HEAD_BYTES>()?;
    // Looked at first, because sums of all places would take long.
    if head.get(4) != Some(&Kind::Root.code()) || head.get(5) != Some(&(SYNCED_BYTES as u8)) {
        return None;
    }
    let head = Head::decode(segment, head).filter(|head| head.kind == Kind::Root && head.is_body(body))?;
    (head.len as usize == SYNCED_BYTES).then_some(u64::from_le_bytes(body.try_into().ok()?))
}

/// The body of a record that lets go of blocks.
pub(super) fn freed(ids: &[BlockId]) -> Bytes {
    ids.iter().flat_map(|id| id.bits().to_le_bytes()).collect()
}

/// The ids in such a body.
pub(super) fn ids_of(body: &[u8]) -> impl Iterator<Item = BlockId> {
    let chunks = body.as_chunks::<8>().0.iter();
    chunks.filter_map(|bytes| BlockId::from_bits(u64::from_le_bytes(*bytes)))
}

const _: () = assert!(FREED_MAX * 8 <= BODY_BYTES_MAX, "what is let go of fits its record");
