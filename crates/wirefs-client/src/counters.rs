//! Counters since the mount began.

use std::collections::BTreeMap;
use wirefs_op::Request;

/// How often one kind of request was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestCount {
    /// The message's name.
    pub name: &'static str,
    /// How often.
    pub count: u64,
}

/// Counts since the mount began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls by the kernel.
    pub calls: u64,
    /// Bytes sent, frames' own bytes included.
    pub bytes_out: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Frames sent.
    pub frames_out: u64,
    /// Frames received.
    pub frames_in: u64,
    /// Names answered from memory.
    pub name_hits: u64,
    /// Names that had to be requested.
    pub name_misses: u64,
    /// Reads answered from memory.
    pub data_hits: u64,
    /// Reads that had to wait.
    pub data_misses: u64,
    /// Pieces of contents that came from disk.
    pub stored_hits: u64,
    /// Their bytes.
    pub stored_bytes: u64,
    pub(crate) requests: BTreeMap<&'static str, u64>,
}

impl Counters {
    pub(crate) fn count(&mut self, request: &Request) {
        *self.requests.entry(request.name()).or_default() += 1;
    }

    /// Requests by kind, by name.
    pub fn requests(&self) -> Vec<RequestCount> {
        self.requests.iter().map(|(name, count)| RequestCount { name, count: *count }).collect()
    }
}
