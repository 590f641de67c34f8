//! A tree that several nodes change: its turns, and going over to what others made.

use super::{BlockTree, Changes};
use crate::halt::Halt;
use crate::id::BlockId;
use crate::limits::READ_TRIES_MAX;
use crate::shelf::Shelf;
use crate::touch::Unasked;
use crate::turns::{Follower, Turns};
use crate::volume::Volume;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};
use wirefs_op::Errno;

/// The right to change the tree, until it is dropped.
pub(super) struct Turn<'a>(&'a dyn Turns);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl BlockTree {
    /// Waits until this node may change the tree; at once where no other one does.
    pub(super) fn begin_turn(&self, changes: &mut Changes) -> Result<Option<Turn<'_>>, Errno> {
        let Some(turns) = self.store.turns() else { return Ok(None) };
        let root = turns.begin().map_err(|_| Errno::Io)?;
        let turn = Turn(turns);
        if let Some(root) = root {
            self.take_over(root).map_err(|_| Errno::Io)?;
            changes.ids.observe(root);
        }
        Ok(Some(turn))
    }

    /// Has a tree that several nodes change go over to what the others make of it.
    pub fn follow(this: &Arc<BlockTree>) {
        if let Some(turns) = this.store.turns() {
            let follower: Weak<BlockTree> = Arc::downgrade(this);
            turns.follow(follower);
            this.catch_up();
        }
    }

    /// Goes over to the root that is now; to a newer one where that was gone over to meanwhile.
    fn catch_up(&self) {
        for _ in 0..READ_TRIES_MAX {
            match self.store.root() {
                Ok(Some(root)) if self.volume().id != root && self.prepare(root) => {
                    // Where another was prepared meanwhile, it is the newer one.
                    let _is_there = self.go_over(root);
                }
                // What cannot be read now is tried again with the next change.
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// Whether several nodes change it.
    pub fn is_common(&self) -> bool {
        self.store.turns().is_some()
    }

    fn prepared(&self) -> MutexGuard<'_, Option<Volume>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_root(&self, root: BlockId) -> Result<Volume, Halt> {
        let shelf = Shelf::new(&self.cache);
        self.run(&shelf, || Volume::load(&shelf, root))
    }

    fn take_over(&self, root: BlockId) -> Result<(), Halt> {
        if !self.go_over(root) {
            self.show(self.read_root(root)?);
        }
        Ok(())
    }

    fn show(&self, volume: Volume) {
        let era = volume.root.era;
        let before = std::mem::replace(&mut self.state().volume, Arc::new(volume));
        if era != before.root.era {
            self.opens.forget_dead();
        }
        self.tell(Unasked::Everything);
    }
}

impl Follower for BlockTree {
    fn prepare(&self, root: BlockId) -> bool {
        if self.volume().id == root {
            return true;
        }
        let read = self.read_root(root).ok();
        let is_read = read.is_some();
        *self.prepared() = read;
        is_read
    }

    fn go_over(&self, root: BlockId) -> bool {
        if self.volume().id == root {
            return true;
        }
        let prepared = self.prepared().take_if(|volume| volume.id == root);
        let is_read = prepared.is_some();
        prepared.into_iter().for_each(|volume| self.show(volume));
        is_read
    }
}
