//! The root block, written anew by each change.

use crate::codec::{Corrupt, Reader, Writer};
use crate::id::BlockId;
use crate::limits::{ID_BYTES_MAX, PAYLOAD_BYTES_MAX};

/// The version of the on-disk format.
const VERSION: u8 = 1;
/// The maximum size of the fields before the free list, in bytes.
const FIELDS_BYTES_MAX: usize = 96;

/// The contents of the root block.
///
/// ```text
/// 1  1  payload  change  files  table  era  next_group  next_serial  origin  since  count  { id }*
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    /// The maximum size of a block of this tree, in bytes.
    pub(crate) payload_bytes: u32,
    /// The number of changes since the tree was created; never decreases.
    pub(crate) change: u64,
    /// The root of the live tree of files.
    pub(crate) files: BlockId,
    /// The root of the table of checkpoints; `None` if the table is empty.
    pub(crate) table: Option<BlockId>,
    /// How often a checkpoint was restored.
    pub(crate) era: u32,
    /// The first group of inode numbers that is not assigned to a directory.
    pub(crate) next_group: u64,
    /// The serial number of the next checkpoint.
    pub(crate) next_serial: u32,
    /// The serial of the checkpoint that the live tree derives from; 0 if there is none or it was dropped.
    pub(crate) origin: u32,
    /// The root when a checkpoint was last created or restored. Blocks newer than it are in no checkpoint.
    pub(crate) since: Option<BlockId>,
    /// Blocks that this root freed, as many as fit. They are deregistered again when the tree is opened, in
    /// case a crash interrupted their deregistration.
    pub(crate) free_list: Vec<BlockId>,
}

impl Root {
    /// Returns how many ids fit the free list of a root.
    pub(crate) fn free_list_max(payload_bytes: usize) -> usize {
        payload_bytes.saturating_sub(FIELDS_BYTES_MAX) / ID_BYTES_MAX
    }

    pub(super) fn put(&self, writer: &mut Writer) {
        writer.byte(VERSION);
        writer.number(u64::from(self.payload_bytes));
        writer.number(self.change);
        writer.lone_id(Some(self.files));
        writer.lone_id(self.table);
        writer.number(u64::from(self.era));
        writer.number(self.next_group);
        writer.number(u64::from(self.next_serial));
        writer.number(u64::from(self.origin));
        writer.lone_id(self.since);
        writer.number(self.free_list.len() as u64);
        let mut before = 0;
        for id in &self.free_list {
            writer.id(*id, &mut before);
        }
    }

    pub(super) fn take(reader: &mut Reader) -> Result<Root, Corrupt> {
        if reader.byte()? != VERSION {
            return Err(reader.corrupt("an unsupported format version"));
        }
        Ok(Root {
            payload_bytes: reader.fitting()?,
            change: reader.number()?,
            files: reader.lone_id()?.ok_or(reader.corrupt("a root without a tree of files"))?,
            table: reader.lone_id()?,
            era: reader.fitting()?,
            next_group: reader.number()?,
            next_serial: reader.fitting()?,
            origin: reader.fitting()?,
            since: reader.lone_id()?,
            free_list: take_free_list(reader)?,
        })
    }
}

fn take_free_list(reader: &mut Reader) -> Result<Vec<BlockId>, Corrupt> {
    let count = reader.fitting::<usize>()?;
    if count > reader.remaining() || count > PAYLOAD_BYTES_MAX {
        return Err(reader.corrupt("a count larger than the block"));
    }
    let mut before = 0;
    (0..count).map(|_| reader.id(&mut before)).collect()
}
