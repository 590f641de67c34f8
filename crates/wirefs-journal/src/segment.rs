//! Reading a segment: what of it is whole, and how the rest is damaged.

use crate::entry::{self, Entry, HEAD_BYTES, MARK, Spot};
use crate::header::{Header, HeaderFault};
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
    while let Some(found) = next_mark(tail, skipped) {
        match entry::at(segment, Spot { salt, offset: at + found as u64 }) {
            Some((entry, length)) => {
                behind.push(entry);
                skipped = found + length;
            }
            None => skipped = found + 1,
        }
    }
    if behind.is_empty() { Rest::Torn { at } } else { Rest::Corrupt { at, behind } }
}

/// Where from `start` on an entry may begin.
fn next_mark(tail: &[u8], start: usize) -> Option<usize> {
    let places = tail.get(start..)?.windows(HEAD_BYTES).position(|window| window.starts_with(&MARK));
    places.map(|place| start + place)
}

#[cfg(test)]
pub(crate) mod tests;
