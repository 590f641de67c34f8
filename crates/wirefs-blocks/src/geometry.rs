//! How large the blocks of a tree are, and what follows from that.

use crate::limits::{
    CONTENTS_ROOM_BYTES, HEAD_ROOM_BYTES, INLINE_BYTES_MAX, NODE_BYTES_MAX, PAYLOAD_BYTES_MAX,
    PAYLOAD_BYTES_MIN,
};

/// The sizes of a tree, fixed when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    payload_bytes: usize,
}

impl Geometry {
    /// The geometry for blocks of at most this many bytes; `None` when that is too few or too many.
    pub(crate) fn new(payload_bytes: usize) -> Option<Geometry> {
        (PAYLOAD_BYTES_MIN..=PAYLOAD_BYTES_MAX).contains(&payload_bytes).then_some(Geometry { payload_bytes })
    }

    /// The largest block.
    pub(crate) fn payload_bytes(self) -> usize {
        self.payload_bytes
    }

    /// The largest head or link block.
    pub(crate) fn node_bytes(self) -> usize {
        self.payload_bytes.min(NODE_BYTES_MAX)
    }

    /// The bytes of a file that one contents block holds.
    pub(crate) fn piece_bytes(self) -> u64 {
        (self.payload_bytes - CONTENTS_ROOM_BYTES) as u64
    }

    /// The largest file that sits in its head.
    pub(crate) fn inline_bytes(self) -> usize {
        (self.node_bytes() - HEAD_ROOM_BYTES).min(INLINE_BYTES_MAX)
    }
}

const _: () = assert!(
    HEAD_ROOM_BYTES > CONTENTS_ROOM_BYTES,
    "what sits in a head fits one contents block when the file grows"
);
