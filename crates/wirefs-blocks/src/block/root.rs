//! The root block: where everything begins, made anew by each change.

use crate::codec::{Corrupt, Reader, Writer};
use crate::id::BlockId;
use crate::limits::{ID_BYTES_MAX, PAYLOAD_BYTES_MAX};

/// The version of the format.
const VERSION: u8 = 1;
/// The fields before the list of what is to be deregistered, in bytes at most.
const FIELDS_BYTES_MAX: usize = 96;

/// What the root block says.
///
/// ```text
/// 1  1  payload  change  files  table  era  next_group  next_serial  origin  since  count  { id }*
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    /// The largest block of the tree, in bytes.
    pub(crate) payload_bytes: u32,
    /// Counts changes; never set back.
    pub(crate) change: u64,
    /// The tree of files.
    pub(crate) files: BlockId,
    /// The table of checkpoints; none when there is no entry in it.
    pub(crate) table: Option<BlockId>,
    /// How often an earlier tree was restored.
    pub(crate) era: u32,
    /// The first group of inode numbers that no directory has.
    pub(crate) next_group: u64,
    /// The serial of the next checkpoint.
    pub(crate) next_serial: u32,
    /// The checkpoint that the tree of files comes from; 0 when there is none or it was dropped.
    pub(crate) origin: u32,
    /// The root when a checkpoint was last made or restored: what is newer is in no checkpoint.
    pub(crate) since: Option<BlockId>,
    /// What nothing reaches any more with this root, as far as there is room to say it: deregistered once more when the
    /// tree is opened, should that not have been done.
    pub(crate) doomed: Vec<BlockId>,
}

impl Root {
    /// How many doomed blocks a root has room for.
    pub(crate) fn doomed_max(payload_bytes: usize) -> usize {
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
        writer.number(self.doomed.len() as u64);
        let mut before = 0;
        for id in &self.doomed {
            writer.id(*id, &mut before);
        }
    }

    pub(super) fn take(reader: &mut Reader) -> Result<Root, Corrupt> {
        if reader.byte()? != VERSION {
            return Err(reader.corrupt("a later version of the format"));
        }
        Ok(Root {
            payload_bytes: reader.fitting()?,
            change: reader.number()?,
            files: reader.lone_id()?.ok_or(reader.corrupt("a root without files"))?,
            table: reader.lone_id()?,
            era: reader.fitting()?,
            next_group: reader.number()?,
            next_serial: reader.fitting()?,
            origin: reader.fitting()?,
            since: reader.lone_id()?,
            doomed: take_doomed(reader)?,
        })
    }
}

fn take_doomed(reader: &mut Reader) -> Result<Vec<BlockId>, Corrupt> {
    let count = reader.fitting::<usize>()?;
    if count > reader.remaining() || count > PAYLOAD_BYTES_MAX {
        return Err(reader.corrupt("a count of what is not there"));
    }
    let mut before = 0;
    (0..count).map(|_| reader.id(&mut before)).collect()
}
