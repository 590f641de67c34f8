//! The sizes of a tree's blocks and reads.

use crate::limits::{
    CONTENTS_ROOM_BYTES, HEAD_ROOM_BYTES, INLINE_BYTES_MAX, NODE_BYTES_MAX, PAYLOAD_BYTES_MAX,
    PAYLOAD_BYTES_MIN, READ_AHEAD_STEP_BYTES,
};

/// The block sizes of a tree, fixed when it is created, and the read-ahead of its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    payload_bytes: usize,
    read_ahead_bytes: u64,
}

impl Geometry {
    /// Returns the geometry for this payload size; `None` if it is out of range.
    pub(crate) fn new(payload_bytes: usize) -> Option<Geometry> {
        let geometry = Geometry { payload_bytes, read_ahead_bytes: 0 };
        (PAYLOAD_BYTES_MIN..=PAYLOAD_BYTES_MAX).contains(&payload_bytes).then_some(geometry)
    }

    /// Sets the read-ahead of the store, in bytes.
    pub(crate) fn with_read_ahead(self, read_ahead_bytes: u64) -> Geometry {
        Geometry { read_ahead_bytes, ..self }
    }

    /// The end of the read-ahead for a read of these bytes, as an offset; `None`: an earlier read did it. Only the read
    /// that contains the first byte of a step reads ahead, so small reads do not repeat it.
    pub(crate) fn read_ahead_end(self, offset: u64, len: u64) -> Option<u64> {
        let begins_step = offset.next_multiple_of(READ_AHEAD_STEP_BYTES) < offset.saturating_add(len);
        (self.read_ahead_bytes > 0 && begins_step)
            .then(|| offset.saturating_add(len).saturating_add(self.read_ahead_bytes))
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
