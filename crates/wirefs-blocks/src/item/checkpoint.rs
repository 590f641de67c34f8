//! A kept root.

use crate::codec::{Corrupt, Reader, Writer};
use crate::id::BlockId;
use bytes::Bytes;
use wirefs_op::Timestamp;
use wirefs_op::path::is_name;

/// What the table says of a checkpoint; its serial is in the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckpointItem {
    /// The tree of files as it was.
    pub(crate) files: BlockId,
    pub(crate) made: Timestamp,
    /// How many changes there had been.
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
            files: reader.lone_id()?.ok_or(reader.corrupt("a checkpoint of nothing"))?,
            made: reader.timestamp()?,
            change: reader.number()?,
            name: reader.rest(),
        };
        if is_name(&item.name) { Ok(item) } else { Err(reader.corrupt("a name that is not clean")) }
    }
}
