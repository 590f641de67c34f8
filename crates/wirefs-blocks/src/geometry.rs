//! The block sizes of a tree.

use crate::limits::{
    CONTENTS_ROOM_BYTES, HEAD_ROOM_BYTES, INLINE_BYTES_MAX, NODE_BYTES_MAX, PAYLOAD_BYTES_MAX,
    PAYLOAD_BYTES_MIN,
};

/// The block sizes of a tree, fixed when it is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    payload_bytes: usize,
}

impl Geometry {
    /// Returns the geometry for this payload size; `None` if it is out of range.
    pub(crate) fn new(payload_bytes: usize) -> Option<Geometry> {
        (PAYLOAD_BYTES_MIN..=PAYLOAD_BYTES_MAX).contains(&payload_bytes).then_some(Geometry { payload_bytes })
    }

    /// The maximum size of a block, in bytes.
    pub(crate) fn payload_bytes(self) -> usize {
        self.payload_bytes
    }

    /// The maximum size of a head or index block, in bytes.
    pub(crate) fn node_bytes(self) -> usize {
        self.payload_bytes.min(NODE_BYTES_MAX)
    }

    /// The bytes of file data in a full contents block.
    pub(crate) fn piece_bytes(self) -> u64 {
        (self.payload_bytes - CONTENTS_ROOM_BYTES) as u64
    }

    /// The maximum size of a file that is stored inline in its head, in bytes.
    pub(crate) fn inline_bytes(self) -> usize {
        (self.node_bytes() - HEAD_ROOM_BYTES).min(INLINE_BYTES_MAX)
    }
}

const _: () =
    assert!(HEAD_ROOM_BYTES > CONTENTS_ROOM_BYTES, "inline data fits one contents block when the file grows");
