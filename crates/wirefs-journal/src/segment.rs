//! Reads a segment: its whole entries, and the damage behind them.

use crate::entry::{self, Entry, HEAD_BYTES, MARK, Spot};
use crate::header::{Header, HeaderFault};
use crate::limits::SECTOR_BYTES;
use bytes::Bytes;

/// The bytes after the last whole entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Only zeros.
    Blank,
    /// An incomplete entry, and no whole entry behind it: a process or machine died while it wrote.
    Torn {
        /// The offset where it begins.
        at: u64,
    },
    /// A damaged place with whole entries behind it.
    Corrupt {
        /// The offset where it begins.
        at: u64,
        /// Whole entries behind the damage. Their changes must not be applied: those before them are lost.
        after_damage: Vec<Entry>,
        /// Whether a sector of the damaged place is zeros: the machine lost power before its disk had written all.
        is_hole: bool,
    },
}

/// The contents of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// The owner of the segment.
    pub header: Header,
    /// All entries before the end or the first damaged place, in order.
    pub entries: Vec<Entry>,
    /// The bytes after them.
    pub rest: Tail,
}

/// Reads a segment.
///
/// # Errors
/// Fails if the header is no readable one.
///
/// # Cost
/// One step for each byte, written or not; entries share the segment's memory.
pub fn scan(segment: &Bytes) -> Result<Scan, HeaderFault> {
    let (header, end, salt) = Header::decode(segment)?;
    let mut offset = end as u64;
    let mut entries = Vec::new();
    while let Some((entry, length)) = entry::at(segment, Spot { salt, offset }) {
        entries.push(entry);
        offset += length as u64;
    }
    Ok(Scan { header, entries, rest: rest(segment, salt, offset) })
}

fn rest(segment: &Bytes, salt: u32, at: u64) -> Tail {
    let tail = usize::try_from(at).ok().and_then(|start| segment.get(start..)).unwrap_or_default();
    if tail.iter().all(|&byte| byte == 0) {
        return Tail::Blank;
    }
    let mut after_damage = Vec::new();
    let mut skipped = 1;
    let mut end = tail.len();
    while let Some(found) = next_mark(tail, skipped) {
        match entry::at(segment, Spot { salt, offset: at + found as u64 }) {
            Some((entry, length)) => {
                end = end.min(found);
                after_damage.push(entry);
                skipped = found + length;
            }
            None => skipped = found + 1,
        }
    }
    if after_damage.is_empty() {
        return Tail::Torn { at };
    }
    let missing = tail.get(..end).unwrap_or_default();
    Tail::Corrupt { at, after_damage, is_hole: has_hole(missing, segment.len() - tail.len()) }
}

/// Returns whether a whole sector of these bytes, which begin at an offset of their segment, is zeros: a disk writes a sector or does not.
fn has_hole(missing: &[u8], at: usize) -> bool {
    let to_next = SECTOR_BYTES - at % SECTOR_BYTES;
    let Some((first, sectors)) = missing.split_at_checked(to_next) else { return false };
    let mut sectors = std::iter::once(first).chain(sectors.chunks_exact(SECTOR_BYTES));
    sectors.any(|sector| sector.iter().all(|&byte| byte == 0))
}

/// Returns the offset of the next possible entry from `start` on.
fn next_mark(tail: &[u8], start: usize) -> Option<usize> {
    let places = tail.get(start..)?.windows(HEAD_BYTES).position(|window| window.starts_with(&MARK));
    places.map(|place| start + place)
}

#[cfg(test)]
pub(crate) mod tests;
