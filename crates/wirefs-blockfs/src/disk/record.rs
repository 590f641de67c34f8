//! The records of the log.
//!
//! ```text
//! head_sum[4]  kind[1]  len[4]  id[8]  body_sum[4]  body[len]        little-endian
//! ```
//! `head_sum` covers the segment number and the fields up to the body. The body of a root record is the
//! synced length of its segment at the time of the write (8 bytes; empty in some roots). An incomplete record
//! before that offset was damaged later; one after it may never have reached the disk.

use bytes::{Buf, Bytes};
use wirefs_blocks::id::BlockId;
use wirefs_log::{Checksum, Crc32c};

/// The size of a record without its body, in bytes.
pub(super) const HEAD_BYTES: usize = 21;
/// The maximum number of ids in a free record.
pub(super) const FREED_MAX: usize = 4096;
/// The maximum size of a body, in bytes.
pub(super) const BODY_BYTES_MAX: usize = 64 * 1024;
/// The size of the body of a root record, in bytes.
const SYNCED_BYTES: usize = 8;
/// The size of a root record, in bytes.
pub(super) const ROOT_BYTES: usize = HEAD_BYTES + SYNCED_BYTES;

/// The kinds of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// The first record of a segment. Body: format version and payload.
    Begin = 1,
    /// A block.
    Block = 2,
    /// A new root. Body: the synced length of the segment.
    Root = 3,
    /// Freed blocks. Body: their ids.
    Free = 4,
}

impl Kind {
    fn of(code: u8) -> Option<Kind> {
        [Kind::Begin, Kind::Block, Kind::Root, Kind::Free].into_iter().find(|kind| *kind as u8 == code)
    }
}

/// The fields before the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    pub(super) len: u32,
    /// The block or the root; 0 in other records.
    pub(super) id: u64,
    pub(super) body_sum: [u8; Crc32c::BYTES],
}

impl Head {
    /// Decodes the fields before a body; `None` if the checksum does not match.
    pub(super) fn decode(segment: u64, bytes: &[u8; HEAD_BYTES]) -> Option<Head> {
        let (head_sum, mut tail) = bytes.split_first_chunk()?;
        if Crc32c::of(&[&segment.to_le_bytes(), tail]) != *head_sum {
            return None;
        }
        let head = Head {
            kind: Kind::of(tail.try_get_u8().ok()?)?,
            len: tail.try_get_u32_le().ok()?,
            id: tail.try_get_u64_le().ok()?,
            body_sum: *tail.first_chunk()?,
        };
        (head.len as usize <= BODY_BYTES_MAX).then_some(head)
    }

    /// Returns whether length and checksum of a body match.
    pub(super) fn is_body(&self, body: &[u8]) -> bool {
        body.len() == self.len as usize && Crc32c::of(&[body]) == self.body_sum
    }

    /// The length of the whole record, in bytes.
    pub(super) fn record_bytes(&self) -> u64 {
        HEAD_BYTES as u64 + u64::from(self.len)
    }
}

/// Appends a record to a buffer.
pub(super) fn put(to: &mut Vec<u8>, segment: u64, kind: Kind, id: u64, body: &[u8]) {
    let len = u32::try_from(body.len()).unwrap_or(u32::MAX);
    let tail = [&[kind as u8][..], &len.to_le_bytes(), &id.to_le_bytes(), &Crc32c::of(&[body])].concat();
    to.extend(Crc32c::of(&[&segment.to_le_bytes(), &tail]));
    to.extend(tail);
    to.extend_from_slice(body);
}

/// Encodes the body of a root record.
pub(super) fn synced(bytes: u64) -> Bytes {
    Bytes::copy_from_slice(&bytes.to_le_bytes())
}

/// Returns the synced length if these bytes are a complete root record.
pub(super) fn synced_of_root(segment: u64, record: &[u8]) -> Option<u64> {
    let (head, body) = record.split_first_chunk::<HEAD_BYTES>()?;
    // A cheap check first: this function runs at every offset of a damaged file.
    if head.get(4) != Some(&(Kind::Root as u8)) || head.get(5) != Some(&(SYNCED_BYTES as u8)) {
        return None;
    }
    let head = Head::decode(segment, head).filter(|head| head.kind == Kind::Root && head.is_body(body))?;
    (head.len as usize == SYNCED_BYTES).then_some(u64::from_le_bytes(body.try_into().ok()?))
}

/// Encodes the body of a free record.
pub(super) fn freed(ids: &[BlockId]) -> Bytes {
    ids.iter().flat_map(|id| id.bits().to_le_bytes()).collect()
}

/// Decodes the body of a free record.
pub(super) fn ids_of(body: &[u8]) -> impl Iterator<Item = BlockId> {
    let chunks = body.as_chunks::<8>().0.iter();
    chunks.filter_map(|bytes| BlockId::from_bits(u64::from_le_bytes(*bytes)))
}

const _: () = assert!(FREED_MAX * 8 <= BODY_BYTES_MAX, "the freed ids of one record fit its body");
