//! The whole of a store as one root block says it: the present tree, the checkpoints, and what is still to be done.

use crate::block::{Block, Root};
use crate::halt::Halt;
use crate::id::BlockId;
use crate::item::CheckpointItem;
use crate::key::{Ino, Key, Part};
use crate::map::Map;
use crate::shelf::Shelf;
use bytes::Bytes;
use wirefs_op::{Errno, FileId, Timestamp};

/// The file system of the directory of checkpoints. The serials of these are their file systems, and below it.
pub(crate) const CHECKPOINTS_FS: u32 = FileId::PROVISIONAL - 1;

/// A kept root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Never used again for another.
    pub(crate) serial: u32,
    pub(crate) name: Bytes,
    /// Its tree of files.
    pub(crate) files: BlockId,
    pub(crate) made: Timestamp,
    pub(crate) change: u64,
}

impl Kept {
    pub(crate) fn key(&self) -> Key {
        Key::new(Ino(u64::from(self.serial)), Part::Checkpoint, 0)
    }

    pub(crate) fn item(&self) -> CheckpointItem {
        let Kept { files, made, change, .. } = *self;
        CheckpointItem { files, made, change, name: self.name.clone() }
    }
}

/// A tree of files that is being taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dying {
    pub(crate) files: BlockId,
    /// The change that doomed it. A tree may be doomed again while it is taken apart: it was restored meanwhile.
    pub(crate) change: u64,
}

impl Dying {
    pub(crate) fn key(self) -> Key {
        Key::new(Ino(self.files.bits()), Part::Dying, self.change)
    }
}

/// What one root block leads to. A new one with each change; readers keep the one that they began with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Volume {
    /// The root block's own id: all blocks of this volume are older.
    pub(crate) id: BlockId,
    pub(crate) root: Root,
    pub(crate) checkpoints: Vec<Kept>,
    pub(crate) dying: Vec<Dying>,
}

impl Volume {
    /// Reads a root block and its table.
    pub(crate) fn load(shelf: &Shelf<'_>, id: BlockId) -> Result<Volume, Halt> {
        let Block::Root(root) = &*shelf.block(id)? else { return Err(Halt::Failed(Errno::Io)) };
        let mut volume = Volume { id, root: root.clone(), checkpoints: Vec::new(), dying: Vec::new() };
        let table = Map { shelf, root: root.table };
        let last = Key::new(Ino(u64::MAX), Part::Dying, u64::MAX);
        for item in table.scan(Key::MIN..=last, usize::MAX)? {
            match item.key.part {
                Part::Checkpoint => {
                    let serial = u32::try_from(item.key.ino.0).map_err(|_| Errno::Io)?;
                    let CheckpointItem { files, made, change, name } = CheckpointItem::decode(item.value)?;
                    volume.checkpoints.push(Kept { serial, name, files, made, change });
                }
                Part::Dying => {
                    let files = BlockId::from_bits(item.key.ino.0).ok_or(Errno::Io)?;
                    volume.dying.push(Dying { files, change: item.key.sub });
                }
                Part::Head | Part::Xattr | Part::Entry | Part::Run | Part::Dead => {
                    return Err(Halt::Failed(Errno::Io));
                }
            }
        }
        Ok(volume)
    }

    pub(crate) fn checkpoint(&self, serial: u32) -> Option<&Kept> {
        self.checkpoints.iter().find(|kept| kept.serial == serial)
    }

    pub(crate) fn checkpoint_named(&self, name: &[u8]) -> Option<&Kept> {
        self.checkpoints.iter().find(|kept| kept.name == name)
    }

    /// The root of a tree of files: 0 is the present one, others are checkpoints by their serial.
    pub(crate) fn files(&self, fs: u32) -> Option<BlockId> {
        match fs {
            0 => Some(self.root.files),
            serial => self.checkpoint(serial).map(|kept| kept.files),
        }
    }
}
