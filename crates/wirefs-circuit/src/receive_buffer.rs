//! What one circuit received: in order for its user, out of order until the gaps are filled; and what it granted.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Bytes, BytesMut};

use crate::limits::{CREDIT_FIRST, PIECES_MAX, READY_BYTES_JOINED, READY_BYTES_SMALL};

/// What a peer may not send on a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breach {
    /// More than was granted.
    Credit,
    /// Beyond the end, or a second end elsewhere.
    End,
}

#[derive(Debug)]
pub(crate) struct Receiving {
    ready: VecDeque<Bytes>,
    ready_bytes: u64,
    /// Everything before this is, or was, ready.
    next: u64,
    pieces: BTreeMap<u64, Bytes>,
    piece_bytes: u64,
    end: Option<u64>,
    /// The user has read so far.
    read: u64,
    granted: u64,
    window: u64,
    is_end_read: bool,
}

impl Receiving {
    pub(crate) fn new() -> Receiving {
        Receiving {
            ready: VecDeque::new(),
            ready_bytes: 0,
            next: 0,
            pieces: BTreeMap::new(),
            piece_bytes: 0,
            end: None,
            read: 0,
            granted: CREDIT_FIRST,
            window: CREDIT_FIRST,
            is_end_read: false,
        }
    }

    /// Bytes held.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.ready_bytes + self.piece_bytes
    }

    /// Whether there is room for one more piece that begins here, as it may begin before the gap is filled.
    pub(crate) fn has_room(&self, offset: u64) -> bool {
        offset <= self.next || self.pieces.len() < PIECES_MAX
    }

    /// Takes data. Returns whether there is something new to be read.
    ///
    /// # Errors
    /// The peer sent what it may not send.
    pub(crate) fn insert(&mut self, offset: u64, bytes: &[u8], is_last: bool) -> Result<bool, Breach> {
        let end = offset + bytes.len() as u64;
        if end > self.granted {
            return Err(Breach::Credit);
        }
        let reached =
            self.pieces.last_key_value().map_or(self.next, |(start, piece)| start + piece.len() as u64);
        let is_contrary = match self.end {
            Some(known) => end > known || is_last && end != known,
            None => is_last && end < reached.max(self.next),
        };
        if is_contrary {
            return Err(Breach::End);
        }
        let mut is_news = false;
        if is_last && self.end.is_none() {
            self.end = Some(end);
            is_news = end == self.next;
        }
        if end <= self.next {
            return Ok(is_news);
        }
        if offset <= self.next {
            let new = bytes.get((self.next - offset) as usize..).unwrap_or_default();
            self.make_ready(Bytes::copy_from_slice(new));
            self.join();
            return Ok(true);
        }
        self.keep(offset, end, bytes);
        Ok(is_news)
    }

    /// Keeps what no other piece has: what is held is never more than what was granted.
    fn keep(&mut self, mut start: u64, mut end: u64, bytes: &[u8]) {
        let first = start;
        if let Some((before, piece)) = self.pieces.range(..=start).next_back() {
            start = start.max(before + piece.len() as u64);
        }
        while let Some((&at, piece)) = self.pieces.range(start..).next().filter(|(at, _)| **at < end) {
            let length = piece.len() as u64;
            if at + length > end {
                end = at;
                break;
            }
            self.pieces.remove(&at);
            self.piece_bytes -= length;
        }
        let new = bytes.get((start - first) as usize..end.saturating_sub(first) as usize).unwrap_or_default();
        if !new.is_empty() {
            self.piece_bytes += new.len() as u64;
            self.pieces.insert(start, Bytes::copy_from_slice(new));
        }
    }

    fn make_ready(&mut self, bytes: Bytes) {
        self.next += bytes.len() as u64;
        self.ready_bytes += bytes.len() as u64;
        match self.ready.back_mut() {
            // Each piece costs more than its bytes: many tiny ones would hold far more than was granted.
            Some(last) if bytes.len() < READY_BYTES_SMALL && last.len() < READY_BYTES_JOINED => {
                let joined = std::mem::take(last).try_into_mut();
                let mut joined = joined.unwrap_or_else(|shared| BytesMut::from(&*shared));
                joined.extend_from_slice(&bytes);
                *last = joined.freeze();
            }
            Some(_) | None => self.ready.push_back(bytes),
        }
    }

    /// Moves the pieces that follow without a gap.
    fn join(&mut self) {
        while let Some(entry) = self.pieces.first_entry().filter(|entry| *entry.key() <= self.next) {
            let (offset, piece) = entry.remove_entry();
            self.piece_bytes -= piece.len() as u64;
            let known = usize::try_from(self.next - offset).unwrap_or(usize::MAX);
            if known < piece.len() {
                self.make_ready(piece.slice(known..));
            }
        }
    }

    /// Gives what is next, in the pieces in which it came; tiny ones together.
    pub(crate) fn read(&mut self) -> Option<Bytes> {
        let bytes = self.ready.pop_front()?;
        self.ready_bytes -= bytes.len() as u64;
        self.read += bytes.len() as u64;
        Some(bytes)
    }

    /// Whether the user has read everything up to the end; telling so is noted.
    pub(crate) fn read_end(&mut self) -> bool {
        self.is_end_read = self.end == Some(self.read);
        self.is_end_read
    }

    /// Whether the user knows that it is over.
    pub(crate) fn is_done(&self) -> bool {
        self.is_end_read
    }

    /// Whether the window is used up so far that more should be granted.
    pub(crate) fn is_grant_due(&self) -> bool {
        self.end.is_none() && self.read + self.window >= self.granted + self.window / 2
    }

    /// Bytes by which the window is larger than the first credit: taken from the group's pool.
    pub(crate) fn extra(&self) -> u64 {
        self.window - CREDIT_FIRST
    }

    /// Makes the window larger, by at most `pool` and up to `most`.
    pub(crate) fn widen(&mut self, most: u64, pool: u64) {
        self.window += self.window.min(pool).min(most.saturating_sub(self.window));
    }

    /// Grants what the window allows; returns up to which offset.
    pub(crate) fn grant(&mut self) -> u64 {
        self.granted = self.granted.max(self.read + self.window);
        self.granted
    }
}

#[cfg(test)]
mod tests;
