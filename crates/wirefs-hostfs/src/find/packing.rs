//! Packs the records of a stream into messages, with limits on their size, their age, and the whole stream.

use super::reading::FoundEntry;
use super::{FIRST_AGE_MAX, MESSAGE_AGE_MAX};
use bytes::Bytes;
use std::time::Instant;
use wirefs_op::find_listing::{FindDirectory, FindWriter};
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::find::Tfind;

/// The result of adding a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Fit {
    /// It is in the message.
    Packed,
    /// The message is full; it fits into the next one.
    Full,
    /// The limits of the request leave no room for it.
    Over,
}

/// The message that is being filled, and the rest of the request's limits.
#[derive(Debug)]
pub(super) struct Packing {
    writer: FindWriter,
    writer_bytes_max: usize,
    /// Bytes of the message's first record. A message with nothing else has as much room as the next one.
    begun_bytes: usize,
    /// When its first record was added.
    since: Option<Instant>,
    /// Whether this is the first message.
    is_first: bool,
    entries_left: u64,
    bytes_left: usize,
}

impl Packing {
    pub(super) fn new(request: &Tfind) -> Packing {
        let bytes_left = usize::try_from(request.bytes).unwrap_or(usize::MAX);
        let writer_bytes_max = bytes_left.min(DATA_BYTES_MAX);
        Packing {
            writer: FindWriter::new(writer_bytes_max),
            writer_bytes_max,
            begun_bytes: 0,
            since: None,
            is_first: true,
            entries_left: request.entries.into(),
            bytes_left,
        }
    }

    /// Whether the request leaves less than a whole message, so that the next one would have no more room than
    /// this.
    fn is_last(&self) -> bool {
        self.writer_bytes_max < DATA_BYTES_MAX
    }

    /// Begins a directory, or continues one at the start of a message.
    pub(super) fn directory(&mut self, directory: &FindDirectory, now: Instant) -> Fit {
        let is_start = self.writer.is_empty();
        if !self.writer.directory(directory) {
            return if self.is_last() || is_start { Fit::Over } else { Fit::Full };
        }
        self.since.get_or_insert(now);
        if is_start {
            self.begun_bytes = self.writer.len();
        }
        Fit::Packed
    }

    /// Adds an entry, without its contents if only these do not fit.
    pub(super) fn entry(&mut self, found: &FoundEntry) -> Fit {
        if self.entries_left == 0 {
            return Fit::Over;
        }
        let FoundEntry { name, stat, contents } = found;
        if !self.writer.entry(name, stat, contents.as_deref()) {
            if !self.is_last() && self.writer.len() > self.begun_bytes {
                return Fit::Full;
            }
            if contents.is_none() || !self.writer.entry(name, stat, None) {
                return Fit::Over;
            }
        }
        self.entries_left -= 1;
        Fit::Packed
    }

    /// Whether the message is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.writer.is_empty()
    }

    /// Marks the directory as complete.
    pub(super) fn end_directory(&mut self) {
        self.writer.end_directory();
    }

    /// When the message must be sent; `None`: it is empty. The first one is sent early, so that the client can
    /// begin.
    pub(super) fn due(&self) -> Option<Instant> {
        let age_max = if self.is_first { FIRST_AGE_MAX } else { MESSAGE_AGE_MAX };
        self.since.map(|since| since + age_max)
    }

    /// Takes the message's data and begins an empty message.
    pub(super) fn take(&mut self) -> Bytes {
        self.bytes_left = self.bytes_left.saturating_sub(self.writer.len());
        self.writer_bytes_max = self.bytes_left.min(DATA_BYTES_MAX);
        let writer = std::mem::replace(&mut self.writer, FindWriter::new(self.writer_bytes_max));
        self.begun_bytes = 0;
        self.since = None;
        self.is_first = false;
        writer.finish()
    }
}

#[cfg(test)]
mod tests;
