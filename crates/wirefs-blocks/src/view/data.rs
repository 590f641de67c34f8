//! Reading data, and searching for data and holes.

use super::View;
use crate::halt::{Halt, Wants};
use crate::item::{Body, Head, Run};
use crate::key::{Ino, Key, Part};
use crate::limits::SEEK_RUNS_MAX;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use wirefs_op::Errno;

/// The result of one step of a search for a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hole {
    /// The offset of the hole, in bytes.
    At(u64),
    /// No hole before this offset, in bytes; the search continues there.
    NotBefore(u64),
}

impl View<'_> {
    /// Returns the key of the run that contains a piece.
    pub(crate) fn run_key(ino: Ino, piece: u64) -> Key {
        Key::new(ino, Part::Run, Run::of(piece).0)
    }

    /// Returns the runs of a range of pieces, by number.
    pub(crate) fn runs(
        &self,
        ino: Ino,
        pieces: RangeInclusive<u64>,
        limit: usize,
    ) -> Result<BTreeMap<u64, Run>, Halt> {
        let keys = Self::run_key(ino, *pieces.start())..=Self::run_key(ino, *pieces.end());
        let items = self.scan(keys, limit)?.into_iter();
        items.map(|item| Ok((item.key.sub, Run::decode(item.value)?))).collect()
    }

    /// Reads up to `count` bytes from `offset`; fewer at the end of the file.
    ///
    /// # Cost
    /// The retrievals of the runs, then one for all contents. If the store reads ahead, the runs of the read-ahead are
    /// retrieved too, and its contents are hints.
    pub(crate) fn read(&self, ino: Ino, head: &Head, offset: u64, count: u64) -> Result<Bytes, Halt> {
        let count = count.min(head.size.saturating_sub(offset));
        if count == 0 {
            return Ok(Bytes::new());
        }
        let len = usize::try_from(count).map_err(|_| Errno::Overflow)?;
        match &head.body {
            Body::Inline(data) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(data.len());
                let there = data.slice(from..(from + len).min(data.len()));
                if there.len() == len {
                    return Ok(there);
                }
                let mut bytes = there.to_vec();
                bytes.resize(len, 0);
                Ok(Bytes::from(bytes))
            }
            Body::Pieces => self.read_pieces(ino, head.size, offset, len),
        }
    }

    fn read_pieces(&self, ino: Ino, size: u64, offset: u64, len: usize) -> Result<Bytes, Halt> {
        let piece_bytes = self.geometry.piece_bytes();
        let (first, last) = (offset / piece_bytes, (offset + len as u64 - 1) / piece_bytes);
        let ahead =
            self.geometry.read_ahead_end(offset, len as u64).map(|end| end.min(size).div_ceil(piece_bytes));
        let end = ahead.unwrap_or_default().max(last + 1);
        let runs = self.runs(ino, first..=end - 1, usize::MAX)?;
        let mut bytes = vec![0; len];
        let mut wants = Wants::default();
        for piece in first..=last {
            let (run, place) = Run::of(piece);
            let Some(id) = runs.get(&run).and_then(|run| run.get(place)) else { continue };
            let Some(data) = wants.of(self.contents(id))? else { continue };
            // The offset of the piece in the file, and the requested part of it.
            let start = piece * piece_bytes;
            let from = offset.saturating_sub(start).min(data.len() as u64) as usize;
            let wanted = data.get(from..).unwrap_or_default();
            let at = start.saturating_sub(offset) as usize;
            let room = bytes.get_mut(at..).unwrap_or_default();
            let part = wanted.len().min(room.len());
            if let (Some(room), Some(wanted)) = (room.get_mut(..part), wanted.get(..part)) {
                room.copy_from_slice(wanted);
            }
        }
        for piece in last + 1..end {
            let (run, place) = Run::of(piece);
            if let Some(id) = runs.get(&run).and_then(|run| run.get(place)) {
                wants.hint(id);
            }
        }
        wants.settle()?;
        Ok(Bytes::from(bytes))
    }

    /// Returns the offset of the first data at or after `offset`.
    ///
    /// # Errors
    /// `NoSuchDevice`: only holes follow.
    pub(crate) fn next_data(&self, ino: Ino, head: &Head, offset: u64) -> Result<u64, Halt> {
        if offset >= head.size {
            return Err(Halt::Failed(Errno::NoSuchDevice));
        }
        let found = match &head.body {
            Body::Inline(data) => (offset < data.len() as u64).then_some(offset),
            Body::Pieces => {
                let piece_bytes = self.geometry.piece_bytes();
                let first = offset / piece_bytes;
                // If the first run has no data after the offset, the next one has.
                let runs = self.runs(ino, first..=u64::MAX, 2)?;
                let pieces = runs
                    .iter()
                    .flat_map(|(number, run)| run.indices().map(move |place| Run::piece(*number, place)));
                let piece = pieces.into_iter().find(|piece| *piece >= first);
                piece.map(|piece| (piece * piece_bytes).max(offset))
            }
        };
        found.filter(|found| *found < head.size).ok_or(Halt::Failed(Errno::NoSuchDevice))
    }

    /// Searches the first hole at or after `offset`; the end of the file counts as a hole.
    ///
    /// # Errors
    /// `NoSuchDevice`: `offset` is beyond the end.
    pub(crate) fn next_hole(&self, ino: Ino, head: &Head, offset: u64) -> Result<Hole, Halt> {
        if offset >= head.size {
            return Err(Halt::Failed(Errno::NoSuchDevice));
        }
        match &head.body {
            Body::Inline(data) => Ok(Hole::At((data.len() as u64).max(offset))),
            Body::Pieces => {
                let piece_bytes = self.geometry.piece_bytes();
                let first = offset / piece_bytes;
                let (from, _) = Run::of(first);
                let last = Run::piece(from + SEEK_RUNS_MAX as u64 - 1, 0);
                let runs = self.runs(ino, first..=last, SEEK_RUNS_MAX)?;
                let end = Run::piece(from + SEEK_RUNS_MAX as u64, 0);
                let is_hole = |piece: &u64| {
                    let (run, place) = Run::of(*piece);
                    runs.get(&run).and_then(|run| run.get(place)).is_none()
                };
                let hole = (first..end).find(is_hole);
                let at = |piece: u64| (piece * piece_bytes).max(offset).min(head.size);
                match hole {
                    Some(piece) => Ok(Hole::At(at(piece))),
                    None if at(end) == head.size => Ok(Hole::At(head.size)),
                    None => Ok(Hole::NotBefore(at(end))),
                }
            }
        }
    }
}
