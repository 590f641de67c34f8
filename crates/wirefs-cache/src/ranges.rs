//! The bytes of one file that are known, in pieces that are shared and never copied.

use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;

/// Known byte ranges of one file.
///
/// INVARIANT: pieces are not empty and do not overlap.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    pieces: BTreeMap<u64, Bytes>,
    bytes: usize,
}

fn end_of(start: u64, piece: &Bytes) -> u64 {
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
        self.pieces.insert(offset, data);
    }

    /// Takes in bytes where nothing was known; what was known stays.
    pub fn insert_missing(&mut self, offset: u64, data: &Bytes) {
        let end = offset + data.len() as u64;
        let mut at = offset;
        while let Some((from, to)) = self.first_gap(at, end) {
            let gap = data.slice((from - offset) as usize..(to - offset) as usize);
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
            self.put(at, piece.slice(..(start - at) as usize));
            if end_of(at, &piece) > end {
                self.put(end, piece.slice((end - at) as usize..));
            }
        }
        let inside: Vec<u64> = self.pieces.range(start..end).map(|(at, _)| *at).collect();
        for at in inside {
            let Some(piece) = self.take(at) else { continue };
            if end_of(at, &piece) > end {
                self.put(end, piece.slice((end - at) as usize..));
            }
        }
    }

    fn put(&mut self, at: u64, piece: Bytes) {
        self.take(at);
        if !piece.is_empty() {
            self.bytes += piece.len();
            self.pieces.insert(at, piece);
        }
    }

    fn take(&mut self, at: u64) -> Option<Bytes> {
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

    /// Where the known bytes that include `offset` end; `offset` itself when it is unknown.
    pub fn known_to(&self, offset: u64) -> u64 {
        let first = self.pieces.range(..=offset).next_back();
        let Some(mut end) = first.map(|(at, piece)| end_of(*at, piece)).filter(|end| *end > offset) else {
            return offset;
        };
        for (at, piece) in self.pieces.range(offset + 1..) {
            if *at != end {
                break;
            }
            end = end_of(*at, piece);
        }
        end
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
            return Some(piece.slice((start - at) as usize..(end - at) as usize));
        }
        if self.known_to(start) < end {
            return None;
        }
        let mut whole = BytesMut::with_capacity((end - start) as usize);
        for (at, piece) in self.pieces.range(*at..end) {
            let from = start.saturating_sub(*at) as usize;
            let to = ((end - at) as usize).min(piece.len());
            whole.extend_from_slice(piece.get(from..to)?);
        }
        Some(whole.freeze())
    }

    /// The first unknown stretch of `start..end`.
    pub fn first_gap(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let from = self.known_to(start);
        if from >= end {
            return None;
        }
        let to = self.pieces.range(from..end).next().map_or(end, |(at, _)| *at);
        Some((from, to))
    }
}

#[cfg(test)]
mod tests;
