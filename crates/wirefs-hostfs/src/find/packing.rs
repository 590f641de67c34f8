//! Cutting the records of a stream into messages: how much one holds, how old it may get, and where a bound ends it all.

use super::reading::Found;
use super::{FIRST_AGE_MAX, MESSAGE_AGE_MAX};
use bytes::Bytes;
use std::time::Instant;
use wirefs_op::find_listing::{FindDirectory, FindWriter};
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::find::Tfind;

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Fit {
    /// It is in the message.
    Packed,
    /// Not in this message any more; in the next one.
    Full,
    /// A bound of the request leaves no room for it in any.
    Over,
}

/// The message that is being filled, and what the request's bounds leave.
#[derive(Debug)]
pub(super) struct Packing {
    writer: FindWriter,
    writer_bytes_max: usize,
    /// What the record takes that the message began with: while it holds no more, the next one has no more room either.
    begun_bytes: usize,
    /// When its first record was added.
    since: Option<Instant>,
    /// Whether none was taken yet.
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

    /// Whether the request leaves less than a whole message: then a next one has no more room than this.
    fn is_last(&self) -> bool {
        self.writer_bytes_max < DATA_BYTES_MAX
    }

    /// Begins a directory, or goes on with one at the start of a message.
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

    /// Adds an entry to the directory; without its contents where only these have no room.
    pub(super) fn entry(&mut self, found: &Found) -> Fit {
        if self.entries_left == 0 {
            return Fit::Over;
        }
        let Found { name, stat, contents } = found;
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

    /// Whether the message holds nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.writer.is_empty()
    }

    /// Says that the directory is complete.
    pub(super) fn end_directory(&mut self) {
        self.writer.end_directory();
    }

    /// When the message is to go, full or not; `None`: it is empty. The first one goes early, so that the client has
    /// something to begin with.
    pub(super) fn due(&self) -> Option<Instant> {
        let age_max = if self.is_first { FIRST_AGE_MAX } else { MESSAGE_AGE_MAX };
        self.since.map(|since| since + age_max)
    }

    /// The message's data; the next one is empty.
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
