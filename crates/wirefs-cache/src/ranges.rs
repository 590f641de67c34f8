//! The bytes of one file that are known, in pieces that are shared; only what is left of a large one is copied.

use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;
use std::ops::Range;

/// Known byte ranges of one file.
///
/// INVARIANT: pieces are not empty and do not overlap.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    pieces: BTreeMap<u64, Piece>,
    bytes: usize,
}

/// Shared bytes, and how many bytes they were cut from. All of those stay in memory as long as one of them is shared.
#[derive(Clone, Debug)]
struct Piece {
    data: Bytes,
    whole: usize,
}

impl Piece {
    fn new(data: Bytes) -> Piece {
        Piece { whole: data.len(), data }
    }

    /// A part: less than half of the whole is copied, so that what is known holds at most twice as much memory.
    fn part(&self, range: Range<usize>) -> Piece {
        let data = self.data.slice(range);
        if 2 * data.len() < self.whole {
            Piece::new(Bytes::copy_from_slice(&data))
        } else {
            Piece { data, ..*self }
        }
    }

    fn len(&self) -> usize {
        self.data.len()
    }
}

fn end_of(start: u64, piece: &Piece) -> u64 {
    start + piece.len() as u64
}

impl Ranges {
    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes in bytes; they replace what was known there.
    pub fn insert(&mut self, offset: u64, data: Bytes) {
        if data.is_empty() {
            return;
        }
        self.remove(offset, offset + data.len() as u64);
        self.bytes += data.len();
        self.pieces.insert(offset, Piece::new(data));
    }

    /// Takes in bytes where nothing was known; what was known stays.
    pub fn insert_missing(&mut self, offset: u64, data: &Bytes) {
        let end = offset + data.len() as u64;
        let whole = Piece::new(data.clone());
        let mut at = offset;
        while let Some((from, to)) = self.first_gap(at, end) {
            let gap = whole.part((from - offset) as usize..(to - offset) as usize);
            self.bytes += gap.len();
            self.pieces.insert(from, gap);
            at = to;
        }
    }

    /// Forgets `start..end`.
    pub fn remove(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let before = self.pieces.range(..start).next_back().map(|(at, piece)| (*at, piece.clone()));
        if let Some((at, piece)) = before
            && end_of(at, &piece) > start
        {
            self.put(at, piece.part(0..(start - at) as usize));
            if end_of(at, &piece) > end {
                self.put(end, piece.part((end - at) as usize..piece.len()));
            }
        }
        let inside: Vec<u64> = self.pieces.range(start..end).map(|(at, _)| *at).collect();
        for at in inside {
            let Some(piece) = self.take(at) else { continue };
            if end_of(at, &piece) > end {
                self.put(end, piece.part((end - at) as usize..piece.len()));
            }
        }
    }

    fn put(&mut self, at: u64, piece: Piece) {
        self.take(at);
        if piece.len() > 0 {
            self.bytes += piece.len();
            self.pieces.insert(at, piece);
        }
    }

    fn take(&mut self, at: u64) -> Option<Piece> {
        let piece = self.pieces.remove(&at)?;
        self.bytes -= piece.len();
        Some(piece)
    }

    /// Forgets all from `size` on.
    pub fn truncate(&mut self, size: u64) {
        self.remove(size, u64::MAX);
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.bytes = 0;
    }

    /// Where the known bytes that include `offset` end, `limit` at most; `offset` itself when it is unknown.
    ///
    /// # Cost
    /// The pieces between `offset` and `limit`, not those of the whole file.
    pub fn known_to(&self, offset: u64, limit: u64) -> u64 {
        let mut end = offset;
        let first = self.pieces.range(..=offset).next_back();
        for (at, piece) in first.into_iter().chain(self.pieces.range(offset.saturating_add(1)..)) {
            if *at > end || end >= limit {
                break;
            }
            end = end.max(end_of(*at, piece));
        }
        end.min(limit.max(offset))
    }

    /// Where known bytes begin and end; stretches may follow each other without a gap.
    pub fn stretches(&self) -> impl Iterator<Item = (u64, u64)> {
        self.pieces.iter().map(|(at, piece)| (*at, end_of(*at, piece)))
    }

    /// `start..end`, if all of it is known. Shares one piece, copies when it takes several.
    pub fn read(&self, start: u64, end: u64) -> Option<Bytes> {
        if start >= end {
            return Some(Bytes::new());
        }
        let (at, piece) = self.pieces.range(..=start).next_back()?;
        if end_of(*at, piece) >= end {
            return Some(piece.data.slice((start - at) as usize..(end - at) as usize));
        }
        if self.known_to(start, end) < end {
            return None;
        }
        let mut whole = BytesMut::with_capacity((end - start) as usize);
        for (at, piece) in self.pieces.range(*at..end) {
            let from = start.saturating_sub(*at) as usize;
            let to = ((end - at) as usize).min(piece.len());
            whole.extend_from_slice(piece.data.get(from..to)?);
        }
        Some(whole.freeze())
    }

    /// The first unknown stretch of `start..end`.
    pub fn first_gap(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let from = self.known_to(start, end);
        if from >= end {
            return None;
        }
        let to = self.pieces.range(from..end).next().map_or(end, |(at, _)| *at);
        Some((from, to))
    }
}

#[cfg(test)]
mod tests;
