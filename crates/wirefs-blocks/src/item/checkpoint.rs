//! A checkpoint in the checkpoint table.

use crate::codec::{Corrupt, Reader, Writer};
use crate::id::BlockId;
use bytes::Bytes;
use wirefs_op::Timestamp;
use wirefs_op::path::is_name;

/// The value of a checkpoint item; its serial is in the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckpointItem {
    /// The root of its tree of files.
    pub(crate) files: BlockId,
    pub(crate) made: Timestamp,
    /// The number of changes up to the checkpoint.
    pub(crate) change: u64,
    pub(crate) name: Bytes,
}

impl CheckpointItem {
    pub(crate) fn encode(&self) -> Bytes {
        let mut writer = Writer::new();
        writer.lone_id(Some(self.files));
        writer.timestamp(self.made);
        writer.number(self.change);
        writer.raw(&self.name);
        writer.finish()
    }

    pub(crate) fn decode(bytes: Bytes) -> Result<CheckpointItem, Corrupt> {
        let mut reader = Reader::new(bytes);
        let item = CheckpointItem {
            files: reader.lone_id()?.ok_or(reader.corrupt("a checkpoint without a tree"))?,
            made: reader.timestamp()?,
            change: reader.number()?,
            name: reader.rest(),
        };
        if is_name(&item.name) { Ok(item) } else { Err(reader.corrupt("an invalid name")) }
    }
}
