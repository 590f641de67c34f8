//! Buffers of TLS records, allocated once and reused.

/// The maximum plaintext of a record (RFC 8446, 5.1).
pub(super) const RECORD_BYTES_MAX: usize = 16 * 1024;
/// The overhead of an encrypted record: header, content type, tag.
pub(super) const RECORD_EXTRA_BYTES: usize = 22;
/// Space for one record of a peer, with any padding.
const RECORD_ROOM_BYTES: usize = RECORD_BYTES_MAX + 512;
/// The read size of a busy connection.
const READ_BYTES_MAX: usize = 256 * 1024;

/// Received records that are not yet decrypted: `bytes[start..end]`.
///
/// INVARIANT: `start <= end <= bytes.len() <= READ_BYTES_MAX`.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Incoming {
    pub(super) fn filled(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.start..self.end).unwrap_or_default()
    }

    pub(super) fn discard(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Returns space for at least the rest of one record.
    pub(super) fn room(&mut self) -> &mut [u8] {
        if self.start > 0 && self.bytes.len() - self.end < RECORD_ROOM_BYTES {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.bytes.is_empty() {
            self.bytes.resize(2 * RECORD_ROOM_BYTES, 0);
        }
        self.bytes.get_mut(self.end..).unwrap_or_default()
    }

    /// Records that `count` bytes were read into the space; a full buffer grows for the next read.
    pub(super) fn took(&mut self, count: usize) {
        self.end = (self.end + count).min(self.bytes.len());
        if self.end == self.bytes.len() && self.bytes.len() < READ_BYTES_MAX {
            self.bytes.resize((self.bytes.len() * 2).min(READ_BYTES_MAX), 0);
        }
    }
}

/// Records to send: `bytes[sent..filled]`.
///
/// INVARIANT: `sent <= filled <= bytes.len()`.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    bytes: Vec<u8>,
    sent: usize,
    filled: usize,
}

impl Outgoing {
    pub(super) fn rest(&self) -> &[u8] {
        self.bytes.get(self.sent..self.filled).unwrap_or_default()
    }

    pub(super) fn len(&self) -> usize {
        self.filled - self.sent
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sent == self.filled
    }

    pub(super) fn advance(&mut self, count: usize) {
        self.sent = (self.sent + count).min(self.filled);
        if self.is_empty() {
            (self.sent, self.filled) = (0, 0);
        }
    }

    /// Returns space for `count` bytes; grows if necessary.
    pub(super) fn room(&mut self, count: usize) -> &mut [u8] {
        let wanted = self.filled + count;
        if self.bytes.len() < wanted {
            self.bytes.resize(wanted.next_multiple_of(RECORD_ROOM_BYTES), 0);
        }
        self.bytes.get_mut(self.filled..).unwrap_or_default()
    }

    pub(super) fn took(&mut self, count: usize) {
        self.filled = (self.filled + count).min(self.bytes.len());
    }
}
