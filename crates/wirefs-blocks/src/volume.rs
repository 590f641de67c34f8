//! The decoded root block: the live tree, the checkpoints, and the trees being destroyed.

use crate::block::{Block, Root};
use crate::block_set::BlockSet;
use crate::halt::Halt;
use crate::id::BlockId;
use crate::item::CheckpointItem;
use crate::key::{Ino, Key, Part};
use crate::map::Map;
use bytes::Bytes;
use wirefs_op::{Errno, FileId, Timestamp};

/// The file system id of the checkpoint directory. Serials of checkpoints, which are file system ids too, are
/// smaller.
pub(crate) const CHECKPOINTS_FS: u32 = FileId::PROVISIONAL - 1;

/// A checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredCheckpoint {
    /// Never reused.
    pub(crate) serial: u32,
    pub(crate) name: Bytes,
    /// The root of its tree of files.
    pub(crate) files: BlockId,
    pub(crate) made: Timestamp,
    pub(crate) change: u64,
}

impl StoredCheckpoint {
    pub(crate) fn key(&self) -> Key {
        Key::new(Ino(u64::from(self.serial)), Part::Checkpoint, 0)
    }

    pub(crate) fn item(&self) -> CheckpointItem {
        let StoredCheckpoint { files, made, change, .. } = *self;
        CheckpointItem { files, made, change, name: self.name.clone() }
    }
}

/// A tree of files that is being destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DestroyedTree {
    pub(crate) files: BlockId,
    /// The change that scheduled the destruction. A tree may be scheduled twice if it was restored meanwhile.
    pub(crate) change: u64,
}

impl DestroyedTree {
    pub(crate) fn key(self) -> Key {
        Key::new(Ino(self.files.bits()), Part::DestroyedTree, self.change)
    }
}

/// The state below one root block. Each change creates a new volume; readers keep the one that they started
/// with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Volume {
    /// The id of the root block: all blocks of this volume are older.
    pub(crate) id: BlockId,
    pub(crate) root: Root,
    pub(crate) checkpoints: Vec<StoredCheckpoint>,
    pub(crate) destroyed: Vec<DestroyedTree>,
}

impl Volume {
    /// Loads a root block and its checkpoint table.
    pub(crate) fn load(block_set: &BlockSet<'_>, id: BlockId) -> Result<Volume, Halt> {
        let Block::Root(root) = &*block_set.block(id)? else { return Err(Halt::Failed(Errno::Io)) };
        let mut volume = Volume { id, root: root.clone(), checkpoints: Vec::new(), destroyed: Vec::new() };
        let table = Map { block_set, root: root.table };
        let last = Key::new(Ino(u64::MAX), Part::DestroyedTree, u64::MAX);
        for item in table.scan(Key::MIN..=last, usize::MAX)? {
            match item.key.part {
                Part::Checkpoint => {
                    let serial = u32::try_from(item.key.ino.0).map_err(|_| Errno::Io)?;
                    let CheckpointItem { files, made, change, name } = CheckpointItem::decode(item.value)?;
                    volume.checkpoints.push(StoredCheckpoint { serial, name, files, made, change });
                }
                Part::DestroyedTree => {
                    let files = BlockId::from_bits(item.key.ino.0).ok_or(Errno::Io)?;
                    volume.destroyed.push(DestroyedTree { files, change: item.key.sub });
                }
                Part::Head | Part::Xattr | Part::Entry | Part::Run | Part::Orphan => {
                    return Err(Halt::Failed(Errno::Io));
                }
            }
        }
        Ok(volume)
    }

    pub(crate) fn checkpoint(&self, serial: u32) -> Option<&StoredCheckpoint> {
        self.checkpoints.iter().find(|checkpoint| checkpoint.serial == serial)
    }

    pub(crate) fn checkpoint_named(&self, name: &[u8]) -> Option<&StoredCheckpoint> {
        self.checkpoints.iter().find(|checkpoint| checkpoint.name == name)
    }

    /// Returns the root of a tree of files: 0 is the live tree, others are checkpoints by serial.
    pub(crate) fn files(&self, fs: u32) -> Option<BlockId> {
        match fs {
            0 => Some(self.root.files),
            serial => self.checkpoint(serial).map(|checkpoint| checkpoint.files),
        }
    }
}
