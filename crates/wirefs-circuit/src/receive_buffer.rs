//! The receive buffer of a circuit: in-order data for the user, out-of-order data, and the flow-control
//! credit.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Bytes, BytesMut};

use crate::limits::{INITIAL_CREDIT, OUT_OF_ORDER_MAX, READY_BYTES_JOINED, READY_BYTES_SMALL};

/// A violation of flow control or of the final size (RFC 9000, sections 4.1 and 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReceiveError {
    /// Data beyond the granted credit.
    FlowControl,
    /// Data beyond the final size, or another final size.
    FinalSize,
}

/// The receive side of a circuit.
#[derive(Debug)]
pub(crate) struct ReceiveBuffer {
    ready: VecDeque<Bytes>,
    ready_bytes: u64,
    /// The next expected offset.
    next: u64,
    out_of_order: BTreeMap<u64, Bytes>,
    out_of_order_bytes: u64,
    end: Option<u64>,
    /// The offset up to which the user has read.
    read: u64,
    granted: u64,
    window: u64,
    is_end_read: bool,
}

impl ReceiveBuffer {
    pub(crate) fn new() -> ReceiveBuffer {
        ReceiveBuffer {
            ready: VecDeque::new(),
            ready_bytes: 0,
            next: 0,
            out_of_order: BTreeMap::new(),
            out_of_order_bytes: 0,
            end: None,
            read: 0,
            granted: INITIAL_CREDIT,
            window: INITIAL_CREDIT,
            is_end_read: false,
        }
    }

    /// The buffered data, in bytes.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.ready_bytes + self.out_of_order_bytes
    }

    /// Returns whether data at this offset can be buffered. In-order data always can.
    pub(crate) fn has_room(&self, offset: u64) -> bool {
        offset <= self.next || self.out_of_order.len() < OUT_OF_ORDER_MAX
    }

    /// Inserts data. Returns whether there is new data to read.
    ///
    /// # Errors
    /// The peer violated flow control or the final size.
    pub(crate) fn insert(&mut self, offset: u64, bytes: &[u8], is_last: bool) -> Result<bool, ReceiveError> {
        let end = offset + bytes.len() as u64;
        if end > self.granted {
            return Err(ReceiveError::FlowControl);
        }
        let reached =
            self.out_of_order.last_key_value().map_or(self.next, |(start, piece)| start + piece.len() as u64);
        let is_inconsistent = match self.end {
            Some(known) => end > known || is_last && end != known,
            None => is_last && end < reached.max(self.next),
        };
        if is_inconsistent {
            return Err(ReceiveError::FinalSize);
        }
        let mut is_new_data = false;
        if is_last && self.end.is_none() {
            self.end = Some(end);
            is_new_data = end == self.next;
        }
        if end <= self.next {
            return Ok(is_new_data);
        }
        if offset <= self.next {
            let new = bytes.get((self.next - offset) as usize..).unwrap_or_default();
            self.make_ready(Bytes::copy_from_slice(new));
            self.drain_contiguous();
            return Ok(true);
        }
        self.insert_out_of_order(offset, end, bytes);
        Ok(is_new_data)
    }

    /// Inserts the missing parts of out-of-order data. The total stays within the granted credit.
    fn insert_out_of_order(&mut self, mut start: u64, mut end: u64, bytes: &[u8]) {
        let first = start;
        if let Some((before, piece)) = self.out_of_order.range(..=start).next_back() {
            start = start.max(before + piece.len() as u64);
        }
        while let Some((&at, piece)) = self.out_of_order.range(start..).next().filter(|(at, _)| **at < end) {
            let length = piece.len() as u64;
            if at + length > end {
                end = at;
                break;
            }
            self.out_of_order.remove(&at);
            self.out_of_order_bytes -= length;
        }
        let new = bytes.get((start - first) as usize..end.saturating_sub(first) as usize).unwrap_or_default();
        if !new.is_empty() {
            self.out_of_order_bytes += new.len() as u64;
            self.out_of_order.insert(start, Bytes::copy_from_slice(new));
        }
    }

    fn make_ready(&mut self, bytes: Bytes) {
        self.next += bytes.len() as u64;
        self.ready_bytes += bytes.len() as u64;
        match self.ready.back_mut() {
            // A chunk has overhead: many tiny ones would use far more memory than was granted.
            Some(last) if bytes.len() < READY_BYTES_SMALL && last.len() < READY_BYTES_JOINED => {
                let joined = std::mem::take(last).try_into_mut();
                let mut joined = joined.unwrap_or_else(|shared| BytesMut::from(&*shared));
                joined.extend_from_slice(&bytes);
                *last = joined.freeze();
            }
            Some(_) | None => self.ready.push_back(bytes),
        }
    }

    /// Moves out-of-order data that has become contiguous.
    fn drain_contiguous(&mut self) {
        while let Some(entry) = self.out_of_order.first_entry().filter(|entry| *entry.key() <= self.next) {
            let (offset, piece) = entry.remove_entry();
            self.out_of_order_bytes -= piece.len() as u64;
            let known = usize::try_from(self.next - offset).unwrap_or(usize::MAX);
            if known < piece.len() {
                self.make_ready(piece.slice(known..));
            }
        }
    }

    /// Returns the next chunk of in-order data.
    pub(crate) fn read(&mut self) -> Option<Bytes> {
        let bytes = self.ready.pop_front()?;
        self.ready_bytes -= bytes.len() as u64;
        self.read += bytes.len() as u64;
        Some(bytes)
    }

    /// Returns whether the user has read everything up to the end, and records that.
    pub(crate) fn read_end(&mut self) -> bool {
        self.is_end_read = self.end == Some(self.read);
        self.is_end_read
    }

    /// Returns whether the end was reported to the user.
    pub(crate) fn is_done(&self) -> bool {
        self.is_end_read
    }

    /// Returns whether enough of the window is used to grant more.
    pub(crate) fn is_grant_due(&self) -> bool {
        self.end.is_none() && self.read + self.window >= self.granted + self.window / 2
    }

    /// The growth of the window beyond the initial credit, in bytes; taken from the pool of the group.
    pub(crate) fn window_growth(&self) -> u64 {
        self.window - INITIAL_CREDIT
    }

    /// Doubles the window, by at most `pool` and up to `most`.
    pub(crate) fn grow_window(&mut self, most: u64, pool: u64) {
        self.window += self.window.min(pool).min(most.saturating_sub(self.window));
    }

    /// Grants the window from the read position on; returns the new limit.
    pub(crate) fn grant(&mut self) -> u64 {
        self.granted = self.granted.max(self.read + self.window);
        self.granted
    }
}

#[cfg(test)]
mod tests;
