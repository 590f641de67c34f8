//! Where requests arrive: such that the data of large writes can be kept where it lies.
//!
//! ```text
//!  readv ──> head: 80 bytes   header and operands of a WRITE; all of most other requests
//!            rest: a slab     the data of a WRITE, aligned to pages; the end of a few others
//! ```

use crate::request::{self, Body, Dialect, Header, Malformed};
use crate::{SessionOptions, abi};
use wirefs_client::call::WriteData;
use wirefs_op::limits::XATTR_BYTES_MAX;
use wirefs_slab::{SLAB_BYTES, Slab};

/// What a WRITE has before its data, in bytes.
const HEAD_BYTES: usize = abi::IN_HEADER_BYTES + abi::WRITE_IN_BYTES;
/// Data of this size, in bytes, is kept where it arrived: few of these leave little of a slab unused.
const KEEP_BYTES_MIN: usize = SLAB_BYTES / 4;
/// Data of this size, in bytes, is packed behind the last: what is held is at least one part in 32 of what it keeps
/// alive. Smaller data is lent.
const PACK_BYTES_MIN: usize = SLAB_BYTES / 32;

/// Room behind the head for all but writes, in bytes.
const REST_BYTES_MIN: usize = XATTR_BYTES_MAX + abi::READ_SLACK_BYTES;

const _: () = assert!(REST_BYTES_MIN < SLAB_BYTES, "each request fits in a slab");
const _: () = assert!(SessionOptions::WRITE_BYTES_MAX as usize <= SLAB_BYTES, "each write does");

/// One thread's buffers.
#[derive(Debug)]
pub(crate) struct Inbox {
    head: [u8; HEAD_BYTES],
    arriving: Slab,
    packed: Option<Slab>,
    /// A request that is not in one piece.
    whole: Vec<u8>,
    /// Room that a request may need behind the head.
    rest_bytes_max: usize,
}

/// A request as it arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request<'a> {
    Whole(&'a [u8]),
    Write { head: &'a [u8], data: WriteData<'a> },
}

impl<'a> Request<'a> {
    pub(crate) fn decode(self, dialect: Dialect) -> Result<(Header, Body<'a>), Malformed> {
        match self {
            Request::Whole(bytes) => request::decode(bytes, dialect),
            Request::Write { head, data } => request::decode_write(head, data),
        }
    }
}

impl Inbox {
    pub(crate) fn new(write_bytes_max: u32) -> Inbox {
        let write_bytes_max = usize::try_from(write_bytes_max).unwrap_or(usize::MAX);
        Inbox {
            head: [0; HEAD_BYTES],
            arriving: Slab::new(),
            packed: None,
            whole: Vec::new(),
            rest_bytes_max: write_bytes_max.clamp(REST_BYTES_MIN, SLAB_BYTES),
        }
    }

    /// Room for the next request.
    pub(crate) fn room(&mut self) -> (&mut [u8], &mut [u8]) {
        if self.arriving.room_bytes() < self.rest_bytes_max && !self.arriving.rewind() {
            self.arriving = Slab::new();
        }
        let rest = self.arriving.room().get_mut(..self.rest_bytes_max).unwrap_or_default();
        (&mut self.head, rest)
    }

    /// Hands on the request of `bytes` bytes that came into the room.
    pub(crate) fn open<R>(&mut self, bytes: usize, take: impl FnOnce(Request<'_>) -> R) -> R {
        let head = self.head.get(..bytes).unwrap_or(&self.head);
        let rest_bytes = bytes - head.len();
        if request::is_write(head) {
            if rest_bytes >= KEEP_BYTES_MIN {
                self.arriving.filled(rest_bytes);
                let data = self.arriving.share(rest_bytes);
                return take(Request::Write { head, data: WriteData::Shared(&data) });
            }
            let data = self.arriving.room().get(..rest_bytes).unwrap_or_default();
            if rest_bytes >= PACK_BYTES_MIN {
                let data = pack(&mut self.packed, data);
                return take(Request::Write { head, data: WriteData::Shared(&data) });
            }
            return take(Request::Write { head, data: WriteData::Lent(data) });
        }
        if rest_bytes == 0 {
            return take(Request::Whole(head));
        }
        self.whole.clear();
        self.whole.extend_from_slice(head);
        self.whole.extend_from_slice(self.arriving.room().get(..rest_bytes).unwrap_or_default());
        take(Request::Whole(&self.whole))
    }
}

/// Copies data behind what was packed before.
fn pack(packed: &mut Option<Slab>, data: &[u8]) -> bytes::Bytes {
    let slab = packed.get_or_insert_with(Slab::new);
    if !slab.rewind() && slab.room_bytes() < data.len() {
        *slab = Slab::new();
    }
    if let Some(place) = slab.room().get_mut(..data.len()) {
        place.copy_from_slice(data);
    }
    slab.filled(data.len());
    slab.share(data.len())
}

#[cfg(test)]
mod tests;
