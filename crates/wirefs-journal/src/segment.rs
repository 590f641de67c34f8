//! Reading a segment: what of it is whole, and how the rest is damaged.

use crate::entry::{self, Entry, HEAD_BYTES, MARK, Spot};
use crate::header::{Header, HeaderFault};
use crate::limits::SECTOR_BYTES;
use bytes::Bytes;

/// What stands behind the last whole entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Nothing.
    Blank,
    /// An entry that was not written to its end, and nothing whole behind it: what a process or a machine that died leaves.
    Torn {
        /// Where it begins.
        at: u64,
    },
    /// A damaged place with whole entries behind it.
    Corrupt {
        /// Where it begins.
        at: u64,
        /// What is whole behind it. It may not be carried out: what comes before it is lost.
        behind: Vec<Entry>,
        /// Some of what is not there is zeros, as where a machine lost power before its disk had all.
        is_hole: bool,
    },
}

/// A segment that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// Whose it is.
    pub header: Header,
    /// All entries before the end or the first damaged place, in order.
    pub entries: Vec<Entry>,
    /// What stands behind them.
    pub rest: Rest,
}

/// Reads a segment.
///
/// # Errors
/// Its header says that it is none, or none of this version.
///
/// # Cost
/// One look at each byte, also where nothing was written; entries share the segment's memory.
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

fn rest(segment: &Bytes, salt: u32, at: u64) -> Rest {
    let tail = usize::try_from(at).ok().and_then(|start| segment.get(start..)).unwrap_or_default();
    if tail.iter().all(|&byte| byte == 0) {
        return Rest::Blank;
    }
    let mut behind = Vec::new();
    let mut skipped = 1;
    let mut end = tail.len();
    while let Some(found) = next_mark(tail, skipped) {
        match entry::at(segment, Spot { salt, offset: at + found as u64 }) {
            Some((entry, length)) => {
                end = end.min(found);
                behind.push(entry);
                skipped = found + length;
            }
            None => skipped = found + 1,
        }
    }
    if behind.is_empty() {
        return Rest::Torn { at };
    }
    let missing = tail.get(..end).unwrap_or_default();
    Rest::Corrupt { at, behind, is_hole: has_hole(missing, segment.len() - tail.len()) }
}

/// Whether there are sectors in these bytes, which begin at a place in their segment, that a disk was never given: it takes each as a whole.
fn has_hole(missing: &[u8], at: usize) -> bool {
    let to_next = SECTOR_BYTES - at % SECTOR_BYTES;
    let Some((first, sectors)) = missing.split_at_checked(to_next) else { return false };
    let mut sectors = std::iter::once(first).chain(sectors.chunks_exact(SECTOR_BYTES));
    sectors.any(|sector| sector.iter().all(|&byte| byte == 0))
}

/// Where from `start` on an entry may begin.
fn next_mark(tail: &[u8], start: usize) -> Option<usize> {
    let places = tail.get(start..)?.windows(HEAD_BYTES).position(|window| window.starts_with(&MARK));
    places.map(|place| start + place)
}

#[cfg(test)]
pub(crate) mod tests;
