//! Keeping, forgetting and restoring roots.

use super::Change;
use crate::halt::Halt;
use crate::id::BlockId;
use crate::key::ROOT;
use crate::limits::CHECKPOINTS_MAX;
use crate::volume::{CHECKPOINTS_FS, Dying, Kept};
use bytes::Bytes;
use wirefs_op::Errno;
use wirefs_op::path::is_name;

impl Change<'_> {
    /// Keeps the tree as it was before this change.
    ///
    /// # Errors
    /// `Exists`: there is one of this name. `Invalid`: it is no name. `NoSpace`: there are too many.
    pub(crate) fn keep_checkpoint(&mut self, name: &[u8]) -> Result<u32, Halt> {
        if !is_name(name) {
            return Err(Halt::Failed(Errno::Invalid));
        }
        if self.checkpoints.iter().any(|kept| kept.name == name) {
            return Err(Halt::Failed(Errno::Exists));
        }
        if self.checkpoints.len() >= CHECKPOINTS_MAX {
            return Err(Halt::Failed(Errno::NoSpace));
        }
        let volume = self.basis.volume;
        let kept = Kept {
            serial: self.next_serial,
            name: Bytes::copy_from_slice(name),
            files: volume.root.files,
            made: self.basis.now,
            change: volume.root.change,
        };
        let next = self.next_serial.checked_add(1).filter(|next| *next < CHECKPOINTS_FS);
        self.next_serial = next.ok_or(Errno::NoSpace)?;
        self.table.insert(kept.key(), Some(kept.item().encode()));
        self.origin = kept.serial;
        self.since = Some(volume.id);
        let serial = kept.serial;
        if self.checkpoints.is_empty() {
            self.renew_root()?;
        }
        self.checkpoints.push(kept);
        Ok(serial)
    }

    fn named(&self, name: &[u8]) -> Result<Kept, Halt> {
        let found = self.checkpoints.iter().find(|kept| kept.name == name).cloned();
        found.ok_or(Halt::Failed(Errno::NotFound))
    }

    /// Forgets a checkpoint. Its blocks go later, as far as nothing else reaches them.
    ///
    /// # Errors
    /// `NotFound`.
    pub(crate) fn drop_checkpoint(&mut self, name: &[u8]) -> Result<(), Halt> {
        let kept = self.named(name)?;
        self.forget(&kept);
        self.doom(kept.files);
        if self.checkpoints.is_empty() {
            self.renew_root()?;
        }
        Ok(())
    }

    /// The directory of checkpoints comes or goes: the root directory is another one to whoever knows its names.
    fn renew_root(&mut self) -> Result<(), Halt> {
        let mut root = self.view.head(ROOT)?;
        root.version = self.version();
        self.put_head(ROOT, &root);
        Ok(())
    }

    /// Makes a checkpoint's tree the present one; it stays a checkpoint.
    ///
    /// # Errors
    /// `NotFound`.
    pub(crate) fn restore_checkpoint(&mut self, name: &[u8]) -> Result<(), Halt> {
        let kept = self.named(name)?;
        self.restored = Some(kept.files);
        self.origin = kept.serial;
        self.since = Some(self.basis.volume.id);
        self.doom(self.basis.volume.root.files);
        Ok(())
    }

    /// Goes back to a checkpoint and forgets it.
    ///
    /// # Errors
    /// `NotFound`.
    pub(crate) fn revert(&mut self, name: &[u8]) -> Result<(), Halt> {
        let kept = self.named(name)?;
        self.restore_checkpoint(name)?;
        // Its blocks are those of the present tree now.
        self.forget(&kept);
        Ok(())
    }

    fn forget(&mut self, kept: &Kept) {
        self.table.insert(kept.key(), None);
        self.checkpoints.retain(|other| other.serial != kept.serial);
        if self.origin == kept.serial {
            self.origin = 0;
        }
    }

    /// Notes a tree that is to be taken apart.
    fn doom(&mut self, files: BlockId) {
        let dying = Dying { files, change: self.version() };
        self.table.insert(dying.key(), Some(Bytes::new()));
        self.dying.push(dying);
    }

    /// A tree has been taken apart.
    pub(crate) fn bury(&mut self, dying: Dying) {
        self.table.insert(dying.key(), None);
        self.dying.retain(|other| *other != dying);
    }
}
