//! The end of a change: new blocks, a new root, and the list of freed blocks.

use super::Change;
use crate::affected::AffectedObject;
use crate::block::{Block, Root};
use crate::halt::Halt;
use crate::id::{BlockId, IdAllocator};
use crate::map::member::{Loss, unreached};
use crate::map::{Dropped, Map, rebuild};
use crate::volume::Volume;
use std::sync::Arc;
use wirefs_op::{Errno, FileId};

/// A change that is ready to be registered.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    pub(crate) volume: Volume,
    /// New blocks, children before parents; the root is the last.
    pub(crate) blocks: Vec<(BlockId, Arc<Block>)>,
    /// Blocks that are reachable from neither the new root nor a checkpoint.
    pub(crate) free_list: Vec<BlockId>,
    pub(crate) ids: IdAllocator,
    /// The existing objects that the change modifies.
    pub(crate) affected: Vec<AffectedObject>,
    pub(crate) orphaned: Vec<FileId>,
    pub(crate) adopted: Vec<FileId>,
    pub(crate) trimmed: Vec<FileId>,
}

impl Change<'_> {
    /// Ends the change. Returns `None` if it modified nothing.
    pub(crate) fn seal(self) -> Result<Option<Sealed>, Halt> {
        if self.view.edits.is_empty() && self.table.is_empty() && self.restored.is_none() {
            return Ok(None);
        }
        let affected = self.affected()?;
        let mut ids = self.ids;
        let node_bytes = self.view.geometry.node_bytes();
        let files = rebuild(self.view.map, &self.view.edits, &mut ids, node_bytes)?;
        let old = &self.basis.volume.root;
        let table_map = Map { block_set: self.basis.block_set, root: old.table };
        let table = rebuild(table_map, &self.table, &mut ids, node_bytes)?;
        let mut dropped = files.dropped;
        dropped.extend(&self.dropped);
        let free = self.unreached(&dropped)?;
        let free_list: Vec<BlockId> =
            table.dropped.iter().chain(&free).map(|block| block.id).chain([self.basis.volume.id]).collect();
        let id = ids.allocate().ok_or(Errno::NoSpace)?;
        let free_list_max = Root::free_list_max(old.payload_bytes as usize);
        let root = Root {
            payload_bytes: old.payload_bytes,
            change: old.change + 1,
            files: self.restored.or(files.root).ok_or(Errno::Io)?,
            table: table.root,
            era: old.era.checked_add(u32::from(self.restored.is_some())).ok_or(Errno::NoSpace)?,
            next_group: self.next_group,
            next_serial: self.next_serial,
            origin: self.origin,
            since: self.since,
            free_list: free_list.iter().copied().take(free_list_max).collect(),
        };
        let contents = self.view.fresh.into_iter();
        let nodes = contents.chain(files.created).chain(table.created);
        let blocks = nodes.chain([(id, Arc::new(Block::Root(root.clone())))]).collect();
        Ok(Some(Sealed {
            volume: Volume { id, root, checkpoints: self.checkpoints, destroyed: self.destroyed },
            blocks,
            free_list,
            ids,
            affected,
            orphaned: self.orphaned,
            adopted: self.adopted,
            trimmed: self.trimmed,
        }))
    }

    /// Returns the dropped blocks that no checkpoint references.
    ///
    /// Blocks newer than `since` are in no checkpoint. Older blocks were in the live tree when a checkpoint
    /// was last created or restored, so that checkpoint (the origin) still references them. Only if the
    /// origin was dropped must the other checkpoints be searched. ZFS decides by birth time in the same way.
    fn unreached(&self, dropped: &[Dropped]) -> Result<Vec<Dropped>, Halt> {
        let is_newer =
            |block: &&Dropped| self.checkpoints.is_empty() || self.since.is_none_or(|since| block.id > since);
        let (mut free, older): (Vec<&Dropped>, Vec<&Dropped>) = dropped.iter().partition(is_newer);
        let asked: Vec<Dropped> = older.into_iter().copied().collect();
        let free = free.drain(..).copied();
        if self.origin != 0 {
            return Ok(free.collect());
        }
        let roots: Vec<BlockId> = self.checkpoints.iter().map(|checkpoint| checkpoint.files).collect();
        Ok(free.chain(unreached(self.basis.block_set, &roots, &asked, Loss::MayReach)?).collect())
    }
}
