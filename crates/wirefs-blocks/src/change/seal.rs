//! The end of a change: new blocks, a new root, and what nothing reaches any more.

use super::Change;
use crate::block::{Block, Root};
use crate::halt::Halt;
use crate::id::{BlockId, Ids};
use crate::map::member::{Loss, unreached};
use crate::map::{Dropped, Map, rebuild};
use crate::touch::Touch;
use crate::volume::Volume;
use std::sync::Arc;
use wirefs_op::{Errno, FileId};

/// A change that is ready to be registered.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    pub(crate) volume: Volume,
    /// New blocks, each behind those that it names; the last one is the root.
    pub(crate) blocks: Vec<(BlockId, Arc<Block>)>,
    /// What neither the new root nor a checkpoint reaches.
    pub(crate) doomed: Vec<BlockId>,
    pub(crate) ids: Ids,
    /// What it changes of what was there.
    pub(crate) touched: Vec<Touch>,
    pub(crate) orphaned: Vec<FileId>,
    pub(crate) adopted: Vec<FileId>,
    pub(crate) trimmed: Vec<FileId>,
}

impl Change<'_> {
    /// Ends the change; `None` when it changed nothing.
    pub(crate) fn seal(self) -> Result<Option<Sealed>, Halt> {
        if self.view.edits.is_empty() && self.table.is_empty() && self.restored.is_none() {
            return Ok(None);
        }
        let touched = self.touched()?;
        let mut ids = self.ids;
        let node_bytes = self.view.geometry.node_bytes();
        let files = rebuild(self.view.map, &self.view.edits, &mut ids, node_bytes)?;
        let old = &self.basis.volume.root;
        let table_map = Map { shelf: self.basis.shelf, root: old.table };
        let table = rebuild(table_map, &self.table, &mut ids, node_bytes)?;
        let mut dropped = files.dropped;
        dropped.extend(&self.dropped);
        let free = self.unreached(&dropped)?;
        let doomed: Vec<BlockId> =
            table.dropped.iter().chain(&free).map(|block| block.id).chain([self.basis.volume.id]).collect();
        let id = ids.issue().ok_or(Errno::NoSpace)?;
        let doomed_max = Root::doomed_max(old.payload_bytes as usize);
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
            doomed: doomed.iter().copied().take(doomed_max).collect(),
        };
        let contents = self.view.fresh.into_iter();
        let nodes = contents.chain(files.created).chain(table.created);
        let blocks = nodes.chain([(id, Arc::new(Block::Root(root.clone())))]).collect();
        Ok(Some(Sealed {
            volume: Volume { id, root, checkpoints: self.checkpoints, dying: self.dying },
            blocks,
            doomed,
            ids,
            touched,
            orphaned: self.orphaned,
            adopted: self.adopted,
            trimmed: self.trimmed,
        }))
    }

    /// Which of the blocks that the present tree drops no checkpoint reaches.
    ///
    /// What is newer than `since` came after all checkpoints. What is older was in the present tree when a checkpoint was
    /// last made or restored, so that checkpoint, the origin, still reaches it. Only where the origin is dropped are the
    /// others asked.
    fn unreached(&self, dropped: &[Dropped]) -> Result<Vec<Dropped>, Halt> {
        let is_newer =
            |block: &&Dropped| self.checkpoints.is_empty() || self.since.is_none_or(|since| block.id > since);
        let (mut free, older): (Vec<&Dropped>, Vec<&Dropped>) = dropped.iter().partition(is_newer);
        let asked: Vec<Dropped> = older.into_iter().copied().collect();
        let free = free.drain(..).copied();
        if self.origin != 0 {
            return Ok(free.collect());
        }
        let roots: Vec<BlockId> = self.checkpoints.iter().map(|kept| kept.files).collect();
        Ok(free.chain(unreached(self.basis.shelf, &roots, &asked, Loss::MayReach)?).collect())
    }
}
