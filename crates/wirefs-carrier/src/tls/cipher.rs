//! Buffers of TLS records, initialised once and reused.

/// A record's plaintext at most (RFC 8446 section 5.1).
pub(super) const RECORD_BYTES_MAX: usize = 16 * 1024;
/// What encryption adds to a record: header, content type, tag.
pub(super) const RECORD_EXTRA_BYTES: usize = 22;
/// Room for one record of a peer, whatever it pads.
const RECORD_ROOM_BYTES: usize = RECORD_BYTES_MAX + 512;
/// What a busy connection reads at once.
const READ_BYTES_MAX: usize = 256 * 1024;

/// Records that arrived and are not yet decrypted: `bytes[start..end]`.
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

    /// Room for at least the rest of one record.
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

    /// Notes that `count` bytes came into the room; a full one grows for the next time.
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

    /// Room for `count` bytes; grows by what is missing and some.
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
