//! Changes of file contents: write, truncate, punch, allocate, copy.

use super::Change;
use crate::halt::{Halt, Wants, both};
use crate::item::{Body, Head, Run};
use crate::key::Ino;
use crate::limits::{RUNS_REMOVED_MAX, SIZE_MAX, WINDOW_BYTES_MAX};
use crate::view::{Hole, View};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Range;
use wirefs_op::{Errno, FileId, Kind};

/// `FALLOC_FL_KEEP_SIZE`.
const ALLOCATE_KEEP_SIZE: u32 = 1;
/// `FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE`.
const PUNCH: u32 = 3;
/// `FALLOC_FL_ZERO_RANGE`.
const ZERO: u32 = 16;
/// `FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE`.
const ZERO_KEEP_SIZE: u32 = 17;

/// Whether a bounded step completed the request or must be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Done,
    Again,
}

impl Progress {
    pub(super) fn done_if(is_done: bool) -> Progress {
        if is_done { Progress::Done } else { Progress::Again }
    }
}

/// A range to copy between two files of the live tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyRange {
    pub(crate) from: FileId,
    pub(crate) from_offset: u64,
    pub(crate) to: FileId,
    pub(crate) to_offset: u64,
    pub(crate) count: u64,
}

pub(crate) fn check_end(offset: u64, length: u64) -> Result<(), Errno> {
    match offset.checked_add(length) {
        Some(end) if end <= SIZE_MAX => Ok(()),
        Some(_) | None => Err(Errno::FileTooBig),
    }
}

/// Fails unless the object is a regular file.
pub(crate) fn check_file(kind: Kind) -> Result<(), Errno> {
    match kind {
        Kind::File => Ok(()),
        Kind::Directory => Err(Errno::IsDirectory),
        Kind::Symlink | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => {
            Err(Errno::Invalid)
        }
    }
}

impl Change<'_> {
    fn file(&self, ino: Ino) -> Result<Head, Halt> {
        let head = self.view.head(ino)?;
        check_file(head.kind)?;
        Ok(head)
    }

    /// Returns the file if its generation still matches: after a restore, the inode number may belong to
    /// another file.
    fn same_file(&self, id: FileId) -> Result<(Ino, Head), Halt> {
        let ino = Ino(id.ino);
        let head = self.file(ino)?;
        if head.generation == id.generation { Ok((ino, head)) } else { Err(Halt::Failed(Errno::Stale)) }
    }

    pub(crate) fn write(&mut self, ino: Ino, offset: u64, data: &Bytes) -> Result<(), Halt> {
        let mut head = self.file(ino)?;
        if data.is_empty() {
            return Ok(());
        }
        check_end(offset, data.len() as u64)?;
        self.store(ino, &mut head, offset, data)?;
        self.modify(&mut head);
        self.put_head(ino, &head);
        Ok(())
    }

    /// Writes bytes to an object, inline in the head if they are few. The end must not exceed the maximum
    /// file size.
    pub(super) fn store(&mut self, ino: Ino, head: &mut Head, offset: u64, data: &Bytes) -> Result<(), Halt> {
        let end = offset + data.len() as u64;
        if head.is_trimmed && end > head.size {
            self.trim(ino, head, usize::MAX)?;
        }
        match head.body.clone() {
            Body::Inline(bytes) if end <= self.view.geometry.inline_bytes() as u64 => {
                head.body = Body::Inline(overwritten(&bytes, offset as usize, data));
            }
            Body::Inline(bytes) => {
                head.body = Body::Pieces;
                if !bytes.is_empty() {
                    let mut runs = BTreeMap::new();
                    self.set_piece(ino, head, &mut runs, 0, Some(bytes))?;
                    self.put_runs(ino, runs);
                }
                self.store_pieces(ino, head, offset, data)?;
            }
            Body::Pieces => self.store_pieces(ino, head, offset, data)?,
        }
        head.size = head.size.max(end);
        Ok(())
    }

    fn store_pieces(&mut self, ino: Ino, head: &mut Head, offset: u64, data: &Bytes) -> Result<(), Halt> {
        let piece_bytes = self.view.geometry.piece_bytes();
        let pieces = offset / piece_bytes..(offset + data.len() as u64).div_ceil(piece_bytes);
        let mut runs = self.view.runs(ino, pieces.start..=pieces.end - 1, usize::MAX)?;
        let mut wants = Wants::default();
        let mut changed = Vec::new();
        for piece in pieces {
            let start = piece * piece_bytes;
            let from = start.max(offset);
            let to = (start + piece_bytes).min(offset + data.len() as u64);
            let part = data.slice((from - offset) as usize..(to - offset) as usize);
            let is_whole = from == start && (to == start + piece_bytes || to >= head.size);
            let before = if is_whole { Some(Bytes::new()) } else { wants.of(self.piece(&runs, piece))? };
            if let Some(before) = before {
                changed.push((piece, overwritten(&before, (from - start) as usize, &part)));
            }
        }
        wants.settle()?;
        for (piece, bytes) in changed {
            self.set_piece(ino, head, &mut runs, piece, Some(bytes))?;
        }
        self.put_runs(ino, runs);
        Ok(())
    }

    /// Returns the bytes of a piece; empty for a hole.
    fn piece(&self, runs: &BTreeMap<u64, Run>, piece: u64) -> Result<Bytes, Halt> {
        let (run, place) = Run::of(piece);
        match runs.get(&run).and_then(|run| run.get(place)) {
            Some(id) => self.view.contents(id),
            None => Ok(Bytes::new()),
        }
    }

    /// Replaces a piece by bytes, or by a hole.
    fn set_piece(
        &mut self,
        ino: Ino,
        head: &mut Head,
        runs: &mut BTreeMap<u64, Run>,
        piece: u64,
        bytes: Option<Bytes>,
    ) -> Result<(), Halt> {
        let key = View::run_key(ino, piece);
        let (run, place) = Run::of(piece);
        let id = bytes.map(|bytes| self.add_contents(key, bytes)).transpose()?;
        let before = runs.entry(run).or_default().set(place, id);
        head.pieces = head.pieces.saturating_add(u64::from(id.is_some()));
        if let Some(before) = before {
            head.pieces = head.pieces.saturating_sub(1);
            self.drop_contents(key, before);
        }
        Ok(())
    }

    fn put_runs(&mut self, ino: Ino, runs: BTreeMap<u64, Run>) {
        for (number, run) in runs {
            let value = (!run.is_empty()).then(|| run.encode());
            self.put(View::run_key(ino, Run::piece(number, 0)), value);
        }
    }

    /// Replaces whole pieces by holes, in at most `runs_max` runs. Returns `true` when all are holes.
    pub(super) fn remove_pieces(
        &mut self,
        ino: Ino,
        head: &mut Head,
        pieces: Range<u64>,
        runs_max: usize,
    ) -> Result<bool, Halt> {
        if pieces.is_empty() {
            return Ok(true);
        }
        let found = self.view.runs(ino, pieces.start..=pieces.end - 1, runs_max.saturating_add(1))?;
        let is_all = found.len() <= runs_max;
        let mut runs: BTreeMap<u64, Run> = found.into_iter().take(runs_max).collect();
        let numbers: Vec<u64> = runs.keys().copied().collect();
        for number in numbers {
            let places: Vec<u32> = runs.get(&number).into_iter().flat_map(Run::indices).collect();
            let gone = places.into_iter().map(|place| Run::piece(number, place));
            for piece in gone.filter(|piece| pieces.contains(piece)) {
                self.set_piece(ino, head, &mut runs, piece, None)?;
            }
        }
        self.put_runs(ino, runs);
        Ok(is_all)
    }

    /// Sets the size. Truncated data is invisible to readers at once; its blocks may be freed later.
    pub(crate) fn resize(&mut self, ino: Ino, size: u64) -> Result<(), Halt> {
        if size > SIZE_MAX {
            return Err(Halt::Failed(Errno::Invalid));
        }
        let mut head = self.file(ino)?;
        if size < head.size {
            self.shrink(ino, &mut head, size)?;
        } else if size > head.size && head.is_trimmed {
            self.trim(ino, &mut head, usize::MAX)?;
        }
        head.size = size;
        self.modify(&mut head);
        self.put_head(ino, &head);
        Ok(())
    }

    fn shrink(&mut self, ino: Ino, head: &mut Head, size: u64) -> Result<(), Halt> {
        match head.body.clone() {
            Body::Inline(bytes) => {
                let len = usize::try_from(size).unwrap_or(usize::MAX).min(bytes.len());
                head.body = Body::Inline(bytes.slice(..len));
                Ok(())
            }
            Body::Pieces => {
                let piece_bytes = self.view.geometry.piece_bytes();
                let (last, rest) = (size / piece_bytes, (size % piece_bytes) as usize);
                if rest > 0 {
                    let mut runs = self.view.runs(ino, last..=last, 1)?;
                    let bytes = self.piece(&runs, last)?;
                    if bytes.len() > rest {
                        self.set_piece(ino, head, &mut runs, last, Some(bytes.slice(..rest)))?;
                        self.put_runs(ino, runs);
                    }
                }
                head.size = size;
                self.trim(ino, head, RUNS_REMOVED_MAX)
            }
        }
    }

    /// `fallocate`.
    pub(crate) fn allocate(
        &mut self,
        ino: Ino,
        mode: u32,
        offset: u64,
        length: u64,
    ) -> Result<Progress, Halt> {
        if length == 0 || offset > SIZE_MAX || length > SIZE_MAX {
            return Err(Halt::Failed(Errno::Invalid));
        }
        let mut head = self.file(ino)?;
        check_end(offset, length)?;
        let end = offset + length;
        let is_done = match mode {
            // Space cannot be preallocated in a copy-on-write store.
            0 | ALLOCATE_KEEP_SIZE => true,
            PUNCH | ZERO | ZERO_KEEP_SIZE => self.punch(ino, &mut head, offset, end)?,
            _ => return Err(Halt::Failed(Errno::NotSupported)),
        };
        if matches!(mode, 0 | ZERO) && end > head.size {
            if head.is_trimmed {
                self.trim(ino, &mut head, usize::MAX)?;
            }
            head.size = end;
        }
        self.modify(&mut head);
        self.put_head(ino, &head);
        Ok(Progress::done_if(is_done))
    }

    /// Zeroes a range. Returns `false` if a part of it remains for the next step.
    fn punch(&mut self, ino: Ino, head: &mut Head, offset: u64, end: u64) -> Result<bool, Halt> {
        match head.body.clone() {
            Body::Inline(bytes) => {
                head.body = Body::Inline(zeroed(&bytes, offset, end));
                Ok(true)
            }
            Body::Pieces => {
                let piece_bytes = self.view.geometry.piece_bytes();
                let mut borders = vec![offset / piece_bytes, end / piece_bytes];
                borders.dedup();
                let mut wants = Wants::default();
                for piece in borders {
                    let start = piece * piece_bytes;
                    let is_whole = offset <= start && start + piece_bytes <= end;
                    if !is_whole {
                        wants.of(self.zero_within(
                            ino,
                            head,
                            piece,
                            offset.saturating_sub(start),
                            end - start,
                        ))?;
                    }
                }
                wants.settle()?;
                let whole = offset.div_ceil(piece_bytes)..end / piece_bytes;
                self.remove_pieces(ino, head, whole, RUNS_REMOVED_MAX)
            }
        }
    }

    /// Zeroes a part of one piece.
    fn zero_within(&mut self, ino: Ino, head: &mut Head, piece: u64, from: u64, to: u64) -> Result<(), Halt> {
        let mut runs = self.view.runs(ino, piece..=piece, 1)?;
        let bytes = self.piece(&runs, piece)?;
        let zeroed = zeroed(&bytes, from, to);
        if zeroed != bytes {
            self.set_piece(ino, head, &mut runs, piece, (!zeroed.is_empty()).then_some(zeroed))?;
            self.put_runs(ino, runs);
        }
        Ok(())
    }

    /// Copies the first part of a range and returns the number of bytes copied. Holes stay holes.
    pub(crate) fn copy(&mut self, range: &CopyRange) -> Result<(u64, Progress), Halt> {
        let CopyRange { from_offset, to_offset, count, .. } = *range;
        let ((from, source), (to, mut head)) = both(self.same_file(range.from), self.same_file(range.to))?;
        let data_at = match self.view.next_data(from, &source, from_offset) {
            Err(Halt::Failed(Errno::NoSuchDevice)) => source.size,
            outcome => outcome?,
        };
        let hole = data_at.saturating_sub(from_offset).min(count);
        if hole == 0 {
            let count = count.min(WINDOW_BYTES_MAX as u64 / 2).min(self.data_ahead(&source, range)?);
            let bytes = self.view.read(from, &source, from_offset, count)?;
            self.write(to, to_offset, &bytes)?;
            let copied = bytes.len() as u64;
            return Ok((copied, Progress::done_if(copied == 0 || copied == range.count)));
        }
        let end = to_offset + hole;
        let is_done = self.punch(to, &mut head, to_offset, end)?;
        if end > head.size {
            if head.is_trimmed {
                self.trim(to, &mut head, usize::MAX)?;
            }
            head.size = end;
        }
        self.modify(&mut head);
        self.put_head(to, &head);
        // If the destination still has blocks in the range, the next step punches the same hole again.
        let copied = if is_done { hole } else { 0 };
        Ok((copied, Progress::done_if(copied == range.count)))
    }

    /// Returns the number of bytes of the range before the next hole.
    fn data_ahead(&self, source: &Head, range: &CopyRange) -> Result<u64, Halt> {
        match self.view.next_hole(Ino(range.from.ino), source, range.from_offset) {
            Ok(Hole::At(end) | Hole::NotBefore(end)) => Ok(end - range.from_offset),
            Err(Halt::Failed(Errno::NoSuchDevice)) => Ok(0),
            Err(halt) => Err(halt),
        }
    }
}

/// Returns `bytes` overwritten by `data` at `offset`.
fn overwritten(bytes: &Bytes, offset: usize, data: &[u8]) -> Bytes {
    let end = offset + data.len();
    let mut whole = Vec::with_capacity(end.max(bytes.len()));
    whole.extend_from_slice(bytes);
    whole.resize(end.max(bytes.len()), 0);
    if let Some(place) = whole.get_mut(offset..end) {
        place.copy_from_slice(data);
    }
    Bytes::from(whole)
}

/// Returns `bytes` with a range zeroed; trailing zeros are cut off.
fn zeroed(bytes: &Bytes, from: u64, to: u64) -> Bytes {
    let from = usize::try_from(from).unwrap_or(usize::MAX).min(bytes.len());
    let to = usize::try_from(to).unwrap_or(usize::MAX).min(bytes.len());
    if to == bytes.len() {
        return bytes.slice(..from.min(to));
    }
    let mut whole = bytes.to_vec();
    if let Some(range) = whole.get_mut(from..to) {
        range.fill(0);
    }
    Bytes::from(whole)
}
