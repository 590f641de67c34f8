//! Written data of one file that is not sent yet, since small writes are coalesced.

use crate::call::Handle;
use bytes::{Bytes, BytesMut};

/// Separate ranges that are coalesced, at most: random writes coalesce no more.
const STRETCHES_MAX: usize = 256;

/// Bytes that follow each other.
#[derive(Debug)]
pub(crate) struct Stretch {
    pub(crate) handle: Handle,
    pub(crate) offset: u64,
    data: BytesMut,
    /// Setuid and setgid bits must fall.
    pub(crate) kills_privileges: bool,
}

impl Stretch {
    /// The data of one write.
    pub(crate) fn new(handle: Handle, offset: u64, data: &Bytes, kills_privileges: bool) -> Stretch {
        Stretch { handle, offset, data: BytesMut::from(data.as_ref()), kills_privileges }
    }

    pub(crate) fn into_data(self) -> Bytes {
        self.data.freeze()
    }

    fn end(&self) -> u64 {
        self.offset + self.data.len() as u64
    }
}

/// Coalesced writes, in order.
#[derive(Debug, Default)]
pub(crate) struct Coalesced {
    stretches: Vec<Stretch>,
    bytes: usize,
}

impl Coalesced {
    pub(crate) fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// Adds written data. Returns whether there are at least `enough` bytes to send.
    pub(super) fn add(&mut self, written: Stretch, enough: u32) -> bool {
        self.bytes += written.data.len();
        match self.stretches.last_mut() {
            Some(last) if last.handle == written.handle && last.end() == written.offset => {
                last.data.extend_from_slice(&written.data);
                last.kills_privileges |= written.kills_privileges;
            }
            _ => self.stretches.push(written),
        }
        self.bytes >= enough as usize || self.stretches.len() >= STRETCHES_MAX
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The end of the coalesced data in the file.
    pub(super) fn reaches(&self) -> u64 {
        self.stretches.iter().map(Stretch::end).max().unwrap_or_default()
    }

    /// Removes and returns the data, to be sent.
    pub(super) fn take(&mut self) -> Vec<Stretch> {
        self.bytes = 0;
        std::mem::take(&mut self.stretches)
    }
}
