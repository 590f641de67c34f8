//! Where the bytes of a stream arrive: a few KiB while it is quiet, a slab while it is busy.

use crate::limits::{COPY_BYTES_MAX, READ_BYTES_MIN};
use bytes::Bytes;
use wirefs_slab::Slab;

/// Bytes that have arrived and are not yet taken, and room for more behind them.
#[derive(Debug)]
pub(super) enum Buffer {
    /// `bytes[start..end]` are pending. INVARIANT: `start <= end <= bytes.len()`.
    Quiet { bytes: Vec<u8>, start: usize, end: usize },
    /// What is pending in the slab. It is given up for another when it is full, so that few of them hold much.
    Busy(Slab),
}

impl Buffer {
    pub(super) fn new() -> Buffer {
        Buffer::Quiet { bytes: Vec::new(), start: 0, end: 0 }
    }

    pub(super) fn pending(&self) -> &[u8] {
        match self {
            Buffer::Quiet { bytes, start, end } => bytes.get(*start..*end).unwrap_or_default(),
            Buffer::Busy(slab) => slab.pending(),
        }
    }

    /// Passes over the first `count` pending bytes.
    pub(super) fn skip(&mut self, count: usize) {
        match self {
            Buffer::Quiet { start, end, .. } => *start = (*start + count).min(*end),
            Buffer::Busy(slab) => slab.skip(count),
        }
    }

    /// Takes the first `count` pending bytes; all of them when there are fewer. What is small is copied, so that it
    /// does not keep a whole slab alive.
    pub(super) fn take(&mut self, count: usize) -> Bytes {
        match self {
            Buffer::Busy(slab) if count > COPY_BYTES_MAX => slab.share(count),
            Buffer::Busy(_) | Buffer::Quiet { .. } => {
                let pending = self.pending();
                let taken = Bytes::copy_from_slice(pending.get(..count).unwrap_or(pending));
                self.skip(count);
                taken
            }
        }
    }

    /// Notes that the first `count` bytes of the room are filled.
    pub(super) fn filled(&mut self, count: usize) {
        match self {
            Buffer::Quiet { bytes, end, .. } => *end = (*end + count).min(bytes.len()),
            Buffer::Busy(slab) => slab.filled(count),
        }
    }

    /// Room for `wanted` bytes at least, for `usual` if that costs nothing. Moves at most one unfinished message.
    pub(super) fn room(&mut self, wanted: usize, usual: usize) -> &mut [u8] {
        let is_quiet = usual <= READ_BYTES_MIN && self.pending().len() + wanted <= READ_BYTES_MIN;
        match self {
            Buffer::Quiet { bytes, start, end } if is_quiet => {
                bytes.resize(READ_BYTES_MIN, 0);
                if *start == *end || bytes.len() - *end < wanted {
                    bytes.copy_within(*start..*end, 0);
                    (*start, *end) = (0, *end - *start);
                }
            }
            Buffer::Quiet { .. } => self.move_to(Slab::new()),
            Buffer::Busy(slab) => {
                let is_unused = slab.rewind();
                if is_unused && is_quiet {
                    *self = Buffer::Quiet { bytes: vec![0; READ_BYTES_MIN], start: 0, end: 0 };
                } else if slab.room_bytes() < wanted {
                    self.move_to(Slab::new());
                }
            }
        }
        match self {
            Buffer::Quiet { bytes, end, .. } => bytes.get_mut(*end..).unwrap_or_default(),
            Buffer::Busy(slab) => {
                let most = slab.room_bytes().min(wanted.max(usual));
                slab.room().get_mut(..most).unwrap_or_default()
            }
        }
    }

    fn move_to(&mut self, mut slab: Slab) {
        let pending = self.pending();
        if let Some(place) = slab.room().get_mut(..pending.len()) {
            place.copy_from_slice(pending);
            slab.filled(pending.len());
        }
        *self = Buffer::Busy(slab);
    }
}
