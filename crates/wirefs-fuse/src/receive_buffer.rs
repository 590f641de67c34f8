//! The buffers for requests. Data of large writes is kept in place, without a copy.
//!
//! ```text
//!  readv ──> head: 80 bytes   header and operands of a WRITE; the whole of most other requests
//!            rest: a slab     the data of a WRITE, page-aligned; the end of a few other requests
//! ```

use crate::request::{self, Body, Dialect, MalformedRequest, RequestHeader};
use crate::{SessionOptions, abi};
use wirefs_client::call::WriteData;
use wirefs_op::limits::XATTR_BYTES_MAX;
use wirefs_slab::{SLAB_BYTES, Slab};

/// Bytes of a WRITE before its data.
const HEAD_BYTES: usize = abi::IN_HEADER_BYTES + abi::WRITE_IN_BYTES;
/// Data of at least this size is kept in place, since only a few pieces of this size waste little of a slab.
const KEEP_BYTES_MIN: usize = SLAB_BYTES / 4;
/// Data of at least this size is packed after the previous data, so that held data is at least 1/32 of the memory
/// that it pins. Smaller data is only borrowed.
const PACK_BYTES_MIN: usize = SLAB_BYTES / 32;

/// Room after the head for all requests but writes, in bytes.
const REST_BYTES_MIN: usize = XATTR_BYTES_MAX + abi::READ_SLACK_BYTES;

const _: () = assert!(REST_BYTES_MIN < SLAB_BYTES, "each request fits in a slab");
const _: () = assert!(SessionOptions::WRITE_BYTES_MAX as usize <= SLAB_BYTES, "each write does");

/// The buffers of one thread.
#[derive(Debug)]
pub(crate) struct ReceiveBuffer {
    head: [u8; HEAD_BYTES],
    arriving: Slab,
    packed: Option<Slab>,
    /// The copy of a request that arrived in two pieces.
    whole: Vec<u8>,
    /// The room that a request may need after the head.
    rest_bytes_max: usize,
}

/// A request as it arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request<'a> {
    Whole(&'a [u8]),
    Write { head: &'a [u8], data: WriteData<'a> },
}

impl<'a> Request<'a> {
    pub(crate) fn decode(self, dialect: Dialect) -> Result<(RequestHeader, Body<'a>), MalformedRequest> {
        match self {
            Request::Whole(bytes) => request::decode(bytes, dialect),
            Request::Write { head, data } => request::decode_write(head, data),
        }
    }
}

impl ReceiveBuffer {
    pub(crate) fn new(write_bytes_max: u32) -> ReceiveBuffer {
        let write_bytes_max = usize::try_from(write_bytes_max).unwrap_or(usize::MAX);
        ReceiveBuffer {
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

    /// Passes the received request of `bytes` bytes to `take`.
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

/// Copies data after the previously packed data.
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
