//! Creating, dropping and restoring checkpoints.

use super::Change;
use crate::halt::Halt;
use crate::id::BlockId;
use crate::key::ROOT;
use crate::limits::CHECKPOINTS_MAX;
use crate::volume::{CHECKPOINTS_FS, DestroyedTree, StoredCheckpoint};
use bytes::Bytes;
use wirefs_op::Errno;
use wirefs_op::path::is_name;

impl Change<'_> {
    /// Creates a checkpoint of the tree as it was before this change. Returns its serial.
    ///
    /// # Errors
    /// `Exists`: the name is taken. `Invalid`: not a valid name. `NoSpace`: too many checkpoints.
    pub(crate) fn create_checkpoint(&mut self, name: &[u8]) -> Result<u32, Halt> {
        if !is_name(name) {
            return Err(Halt::Failed(Errno::Invalid));
        }
        if self.checkpoints.iter().any(|checkpoint| checkpoint.name == name) {
            return Err(Halt::Failed(Errno::Exists));
        }
        if self.checkpoints.len() >= CHECKPOINTS_MAX {
            return Err(Halt::Failed(Errno::NoSpace));
        }
        let volume = self.basis.volume;
        let checkpoint = StoredCheckpoint {
            serial: self.next_serial,
            name: Bytes::copy_from_slice(name),
            files: volume.root.files,
            made: self.basis.now,
            change: volume.root.change,
        };
        let next = self.next_serial.checked_add(1).filter(|next| *next < CHECKPOINTS_FS);
        self.next_serial = next.ok_or(Errno::NoSpace)?;
        self.table.insert(checkpoint.key(), Some(checkpoint.item().encode()));
        self.origin = checkpoint.serial;
        self.since = Some(volume.id);
        let serial = checkpoint.serial;
        if self.checkpoints.is_empty() {
            self.touch_root()?;
        }
        self.checkpoints.push(checkpoint);
        Ok(serial)
    }

    fn named(&self, name: &[u8]) -> Result<StoredCheckpoint, Halt> {
        let found = self.checkpoints.iter().find(|checkpoint| checkpoint.name == name).cloned();
        found.ok_or(Halt::Failed(Errno::NotFound))
    }

    /// Drops a checkpoint. Blocks that only it references are freed later.
    ///
    /// # Errors
    /// `NotFound`.
    pub(crate) fn drop_checkpoint(&mut self, name: &[u8]) -> Result<(), Halt> {
        let checkpoint = self.named(name)?;
        self.remove_checkpoint(&checkpoint);
        self.schedule_destroy(checkpoint.files);
        if self.checkpoints.is_empty() {
            self.touch_root()?;
        }
        Ok(())
    }

    /// Changes the version of the root directory, because the entry `.checkpoints` appears or disappears.
    fn touch_root(&mut self) -> Result<(), Halt> {
        let mut root = self.view.head(ROOT)?;
        root.version = self.version();
        self.put_head(ROOT, &root);
        Ok(())
    }

    /// Makes the tree of a checkpoint the live tree. The checkpoint stays.
    ///
    /// # Errors
    /// `NotFound`.
    pub(crate) fn restore_checkpoint(&mut self, name: &[u8]) -> Result<(), Halt> {
        let checkpoint = self.named(name)?;
        self.restored = Some(checkpoint.files);
        self.origin = checkpoint.serial;
        self.since = Some(self.basis.volume.id);
        self.schedule_destroy(self.basis.volume.root.files);
        Ok(())
    }

    /// Restores a checkpoint and drops it.
    ///
    /// # Errors
    /// `NotFound`.
    pub(crate) fn revert(&mut self, name: &[u8]) -> Result<(), Halt> {
        let checkpoint = self.named(name)?;
        self.restore_checkpoint(name)?;
        // Its blocks belong to the live tree now.
        self.remove_checkpoint(&checkpoint);
        Ok(())
    }

    fn remove_checkpoint(&mut self, checkpoint: &StoredCheckpoint) {
        self.table.insert(checkpoint.key(), None);
        self.checkpoints.retain(|other| other.serial != checkpoint.serial);
        if self.origin == checkpoint.serial {
            self.origin = 0;
        }
    }

    /// Schedules the destruction of a tree.
    fn schedule_destroy(&mut self, files: BlockId) {
        let destroyed = DestroyedTree { files, change: self.version() };
        self.table.insert(destroyed.key(), Some(Bytes::new()));
        self.destroyed.push(destroyed);
    }

    /// Removes a destroyed tree from the table.
    pub(crate) fn finish_destroy(&mut self, destroyed: DestroyedTree) {
        self.table.insert(destroyed.key(), None);
        self.destroyed.retain(|other| *other != destroyed);
    }
}
