//! Garbage collection: frees the blocks of destroyed trees in bounded steps, and finds unreachable blocks.

use crate::block::Block;
use crate::block_set::BlockSet;
use crate::halt::{Halt, Wants, both};
use crate::id::BlockId;
use crate::key::{Key, Part};
use crate::limits::{READAHEAD_MAX, REAP_BLOCKS_MAX};
use crate::map::member::{Loss, unreached};
use crate::map::{Dropped, Map};
use crate::volume::{DestroyedTree, Volume};

/// The progress of destroying one tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reaper {
    pub(crate) destroyed: DestroyedTree,
    /// All keys before this one are done.
    cursor: Key,
    /// Delayed blocks exist before the cursor; they keep their ancestors registered.
    has_delayed: bool,
}

/// The result of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reaped {
    /// Unreachable blocks, children before parents.
    pub(crate) free: Vec<BlockId>,
    /// The next step; `None` when the tree is destroyed.
    pub(crate) next: Option<Reaper>,
    /// No progress is possible until a delayed block arrives or is gone.
    pub(crate) is_blocked: bool,
}

/// The traversal of one step.
struct Walk<'a, 's> {
    map: Map<'s>,
    live_roots: &'a [BlockId],
    /// The number of blocks that this step may still read.
    budget: usize,
    cursor: Key,
    free: Vec<BlockId>,
    is_gone: &'a dyn Fn(BlockId) -> bool,
    /// An earlier step of this walk found delayed blocks.
    had_delayed: bool,
    /// Delayed blocks, and blocks that stay because of them.
    delayed_count: usize,
}

impl Reaper {
    pub(crate) fn new(destroyed: DestroyedTree) -> Reaper {
        Reaper { destroyed, cursor: Key::MIN, has_delayed: false }
    }

    /// Processes the next blocks of the destroyed tree. A missing block that is not known to be gone stays,
    /// with its ancestors; the walk then restarts after its end.
    pub(crate) fn step(
        self,
        volume: &Volume,
        block_set: &BlockSet<'_>,
        is_gone: &dyn Fn(BlockId) -> bool,
    ) -> Result<Reaped, Halt> {
        let live_roots = live_roots(volume);
        let mut walk = Walk {
            map: Map { block_set, root: Some(self.destroyed.files) },
            live_roots: &live_roots,
            budget: REAP_BLOCKS_MAX,
            cursor: self.cursor,
            free: Vec::new(),
            is_gone,
            had_delayed: self.has_delayed,
            delayed_count: 0,
        };
        let is_done = walk.destroy(self.destroyed.files, None)?;
        let has_delayed = self.has_delayed || walk.delayed_count > 0;
        let next = match (is_done, has_delayed) {
            (false, _) => Some(Reaper { cursor: walk.cursor, has_delayed, ..self }),
            (true, true) => Some(Reaper::new(self.destroyed)),
            (true, false) => None,
        };
        Ok(Reaped { free: walk.free, next, is_blocked: is_done && has_delayed })
    }
}

/// The roots whose blocks must stay.
fn live_roots(volume: &Volume) -> Vec<BlockId> {
    let checkpoints = volume.checkpoints.iter().map(|checkpoint| checkpoint.files);
    [volume.root.files].into_iter().chain(checkpoints).collect()
}

impl Walk<'_, '_> {
    /// Frees a block and its subtree as far as they are unreachable. Children are freed first, so that an
    /// interrupted walk finds the block again. Returns `false` when the budget is used up.
    fn destroy(&mut self, id: BlockId, level: Option<u8>) -> Result<bool, Halt> {
        if self.budget == 0 {
            return Ok(false);
        }
        self.budget -= 1;
        let (block, below) = match self.map.describe(id, level) {
            Err(Halt::Lost(lost)) if !(self.is_gone)(lost) => {
                self.delayed_count += 1;
                return Ok(true);
            }
            // Freed before, or lost together with its subtree.
            Err(Halt::Lost(_) | Halt::Failed(_)) => return Ok(true),
            outcome => outcome?,
        };
        if unreached(self.map.block_set, self.live_roots, &[block], Loss::MayReach)?.is_empty() {
            return Ok(true);
        }
        let delayed_before = self.delayed_count;
        if block.level == Some(0) {
            let contents = unreached(self.map.block_set, self.live_roots, &below, Loss::MayReach)?;
            self.free.extend(contents.into_iter().map(|contents| contents.id));
        } else if !self.take_children(&below)? {
            return Ok(false);
        }
        if self.delayed_count == delayed_before {
            self.free.push(id);
        }
        Ok(true)
    }

    fn take_children(&mut self, children: &[Dropped]) -> Result<bool, Halt> {
        let from = children.partition_point(|child| child.key <= self.cursor).saturating_sub(1);
        // Some of the skipped children may be delayed.
        self.delayed_count += usize::from(from > 0 && self.had_delayed);
        let mut wants = Wants::default();
        for child in children.iter().skip(from) {
            let done = self.destroy(child.id, child.level);
            if wants.of(done)? == Some(false) {
                // An interrupted child has already set the cursor further.
                self.cursor = self.cursor.max(child.key);
                wants.settle()?;
                return Ok(false);
            }
            if wants.len() >= READAHEAD_MAX {
                break;
            }
        }
        wants.settle()?;
        Ok(true)
    }
}

/// Returns the retrieved blocks `ids` that are unreachable from the live tree, the checkpoints and the table.
/// All must be older than the root of the volume. A delayed block counts as reaching all that its key range
/// covers. Returns nothing while a tree is being destroyed.
pub(crate) fn unreachable_blocks(
    volume: &Volume,
    block_set: &BlockSet<'_>,
    ids: &[BlockId],
    is_gone: &dyn Fn(BlockId) -> bool,
) -> Result<Vec<BlockId>, Halt> {
    let mut places = Vec::new();
    let mut unreachable = Vec::new();
    for id in ids.iter().filter(|_| volume.destroyed.is_empty()) {
        let block = match block_set.block(*id) {
            Err(Halt::Lost(_)) => continue,
            outcome => outcome?,
        };
        let place = match &*block {
            Block::Root(_) => None,
            Block::Contents { key, .. } => Some((*key, None)),
            Block::Head(items) => items.first().map(|item| (item.key, Some(0))),
            Block::Index { level, children } => children.first().map(|child| (child.key, Some(*level))),
        };
        match place {
            Some((key, level)) => places.push(Dropped { id: *id, key, level }),
            // Only the present root is reachable.
            None => unreachable.push(*id),
        }
    }
    let is_of_table = |block: &Dropped| matches!(block.key.part, Part::Checkpoint | Part::DestroyedTree);
    let (of_table, of_files): (Vec<Dropped>, Vec<Dropped>) = places.into_iter().partition(is_of_table);
    let table: Vec<BlockId> = volume.root.table.into_iter().collect();
    let free = both(
        unreached(block_set, &table, &of_table, Loss::IsFinal(is_gone)),
        unreached(block_set, &live_roots(volume), &of_files, Loss::IsFinal(is_gone)),
    )?;
    unreachable.extend(free.0.into_iter().chain(free.1).map(|block| block.id));
    Ok(unreachable)
}
