//! Transactions of a shared tree, and the switch to roots of other nodes.

use super::{BlockTree, Changes};
use crate::affected::UnrequestedChange;
use crate::block_set::BlockSet;
use crate::halt::Halt;
use crate::id::BlockId;
use crate::limits::READ_TRIES_MAX;
use crate::transactions::{RootFollower, Transactions};
use crate::volume::Volume;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};
use wirefs_op::Errno;

/// The right to change the tree; ends on drop.
pub(super) struct Transaction<'a>(&'a dyn Transactions);

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl BlockTree {
    /// Waits for the right to change the tree. Returns `None` for a store of one node.
    pub(super) fn begin_transaction(&self, changes: &mut Changes) -> Result<Option<Transaction<'_>>, Errno> {
        let Some(transactions) = self.store.transactions() else { return Ok(None) };
        let root = transactions.begin().map_err(|_| Errno::Io)?;
        let transaction = Transaction(transactions);
        if let Some(root) = root {
            self.load_root(root).map_err(|_| Errno::Io)?;
            changes.ids.observe(root);
        }
        Ok(Some(transaction))
    }

    /// Registers a shared tree as a follower of the roots of other nodes.
    pub fn follow(this: &Arc<BlockTree>) {
        if let Some(transactions) = this.store.transactions() {
            let follower: Weak<BlockTree> = Arc::downgrade(this);
            transactions.follow(follower);
            this.catch_up();
        }
    }

    /// Switches to the current root, or to a newer one that arrived meanwhile.
    fn catch_up(&self) {
        for _ in 0..READ_TRIES_MAX {
            match self.store.root() {
                Ok(Some(root)) if self.volume().id != root && self.prepare(root) => {
                    // A concurrently prepared root is newer.
                    let _is_there = self.switch_to(root);
                }
                // An unreadable root is read again with the next change.
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// Returns whether several nodes change this tree.
    pub fn is_shared(&self) -> bool {
        self.store.transactions().is_some()
    }

    fn prepared(&self) -> MutexGuard<'_, Option<Volume>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_root(&self, root: BlockId) -> Result<Volume, Halt> {
        let block_set = BlockSet::new(&self.cache);
        self.run(&block_set, || Volume::load(&block_set, root))
    }

    fn load_root(&self, root: BlockId) -> Result<(), Halt> {
        if !self.switch_to(root) {
            self.install_volume(self.read_root(root)?);
        }
        Ok(())
    }

    fn install_volume(&self, volume: Volume) {
        let era = volume.root.era;
        let before = std::mem::replace(&mut self.state().volume, Arc::new(volume));
        if era != before.root.era {
            self.opens.clear_orphans();
        }
        self.notify(UnrequestedChange::Everything);
    }
}

impl RootFollower for BlockTree {
    fn prepare(&self, root: BlockId) -> bool {
        if self.volume().id == root {
            return true;
        }
        let read = self.read_root(root).ok();
        let is_read = read.is_some();
        *self.prepared() = read;
        is_read
    }

    fn switch_to(&self, root: BlockId) -> bool {
        if self.volume().id == root {
            return true;
        }
        let prepared = self.prepared().take_if(|volume| volume.id == root);
        let is_read = prepared.is_some();
        prepared.into_iter().for_each(|volume| self.install_volume(volume));
        is_read
    }
}
