//! The receive buffer: a few KiB while the stream is quiet, a slab while it is busy.

use crate::limits::{COPY_BYTES_MAX, READ_BYTES_MIN};
use bytes::Bytes;
use wirefs_slab::Slab;

/// Bytes that have arrived and are not yet consumed, and free space after them.
#[derive(Debug)]
pub(super) enum Buffer {
    /// `bytes[start..end]` are pending. INVARIANT: `start <= end <= bytes.len()`.
    Small { bytes: Vec<u8>, start: usize, end: usize },
    /// The pending bytes of a slab. A full slab is replaced, so that few held bodies keep it alive.
    Slab(Slab),
}

impl Buffer {
    pub(super) fn new() -> Buffer {
        Buffer::Small { bytes: Vec::new(), start: 0, end: 0 }
    }

    pub(super) fn pending(&self) -> &[u8] {
        match self {
            Buffer::Small { bytes, start, end } => bytes.get(*start..*end).unwrap_or_default(),
            Buffer::Slab(slab) => slab.pending(),
        }
    }

    /// Skips the first `count` pending bytes.
    pub(super) fn skip(&mut self, count: usize) {
        match self {
            Buffer::Small { start, end, .. } => *start = (*start + count).min(*end),
            Buffer::Slab(slab) => slab.skip(count),
        }
    }

    /// Takes the first `count` pending bytes, or all if there are fewer. Small bodies are copied, so that they do not
    /// keep a slab alive.
    pub(super) fn take(&mut self, count: usize) -> Bytes {
        match self {
            Buffer::Slab(slab) if count > COPY_BYTES_MAX => slab.share(count),
            Buffer::Slab(_) | Buffer::Small { .. } => {
                let pending = self.pending();
                let taken = Bytes::copy_from_slice(pending.get(..count).unwrap_or(pending));
                self.skip(count);
                taken
            }
        }
    }

    /// Records that the first `count` bytes of the free space are filled.
    pub(super) fn filled(&mut self, count: usize) {
        match self {
            Buffer::Small { bytes, end, .. } => *end = (*end + count).min(bytes.len()),
            Buffer::Slab(slab) => slab.filled(count),
        }
    }

    /// Returns free space of at least `wanted` bytes; of `preferred` bytes if that costs nothing. Moves at most one
    /// unfinished message.
    pub(super) fn room(&mut self, wanted: usize, preferred: usize) -> &mut [u8] {
        let is_small = preferred <= READ_BYTES_MIN && self.pending().len() + wanted <= READ_BYTES_MIN;
        match self {
            Buffer::Small { bytes, start, end } if is_small => {
                bytes.resize(READ_BYTES_MIN, 0);
                if *start == *end || bytes.len() - *end < wanted {
                    bytes.copy_within(*start..*end, 0);
                    (*start, *end) = (0, *end - *start);
                }
            }
            Buffer::Small { .. } => self.move_to(Slab::new()),
            Buffer::Slab(slab) => {
                let is_unused = slab.rewind();
                if is_unused && is_small {
                    *self = Buffer::Small { bytes: vec![0; READ_BYTES_MIN], start: 0, end: 0 };
                } else if slab.room_bytes() < wanted {
                    self.move_to(Slab::new());
                }
            }
        }
        match self {
            Buffer::Small { bytes, end, .. } => bytes.get_mut(*end..).unwrap_or_default(),
            Buffer::Slab(slab) => {
                let most = slab.room_bytes().min(wanted.max(preferred));
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
        *self = Buffer::Slab(slab);
    }
}
