//! Taking apart what nothing reaches any more, in steps.

use crate::block::Block;
use crate::halt::{Halt, Wants, both};
use crate::id::BlockId;
use crate::key::{Key, Part};
use crate::limits::{AHEAD_MAX, REAP_BLOCKS_MAX};
use crate::map::member::{Loss, unreached};
use crate::map::{Dropped, Map};
use crate::shelf::Shelf;
use crate::volume::{Dying, Volume};

/// How far a dying tree has been taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reaper {
    pub(crate) dying: Dying,
    /// All keys before this one are done.
    cursor: Key,
    /// Before it there are blocks that are late, which keep those above them.
    has_late: bool,
}

/// What one step came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reaped {
    /// Blocks that nothing reaches, each before those that name it.
    pub(crate) free: Vec<BlockId>,
    /// Where to go on; `None` when the tree is taken apart.
    pub(crate) next: Option<Reaper>,
    /// Nothing more can be done until a block that is late has come, or is gone.
    pub(crate) is_stuck: bool,
}

struct Walk<'a, 's> {
    map: Map<'s>,
    keepers: &'a [BlockId],
    /// Blocks that may still be looked at in this step.
    budget: usize,
    cursor: Key,
    free: Vec<BlockId>,
    is_gone: &'a dyn Fn(BlockId) -> bool,
    /// Late ones were found in an earlier step of this walk.
    had_late: bool,
    /// Blocks that could not be looked at and may come yet, and those kept on their account.
    late_count: usize,
}

impl Reaper {
    pub(crate) fn new(dying: Dying) -> Reaper {
        Reaper { dying, cursor: Key::MIN, has_late: false }
    }

    /// Looks at the next blocks of the dying tree. One that cannot be had and is not gone stays, with those that lead to it;
    /// the walk begins anew after its end then.
    pub(crate) fn step(
        self,
        volume: &Volume,
        shelf: &Shelf<'_>,
        is_gone: &dyn Fn(BlockId) -> bool,
    ) -> Result<Reaped, Halt> {
        let keepers = keepers(volume);
        let mut walk = Walk {
            map: Map { shelf, root: Some(self.dying.files) },
            keepers: &keepers,
            budget: REAP_BLOCKS_MAX,
            cursor: self.cursor,
            free: Vec::new(),
            is_gone,
            had_late: self.has_late,
            late_count: 0,
        };
        let is_done = walk.take_apart(self.dying.files, None)?;
        let has_late = self.has_late || walk.late_count > 0;
        let next = match (is_done, has_late) {
            (false, _) => Some(Reaper { cursor: walk.cursor, has_late, ..self }),
            (true, true) => Some(Reaper::new(self.dying)),
            (true, false) => None,
        };
        Ok(Reaped { free: walk.free, next, is_stuck: is_done && has_late })
    }
}

/// The trees whose blocks must stay.
fn keepers(volume: &Volume) -> Vec<BlockId> {
    let checkpoints = volume.checkpoints.iter().map(|kept| kept.files);
    [volume.root.files].into_iter().chain(checkpoints).collect()
}

impl Walk<'_, '_> {
    /// Frees a block with all below it, as far as nothing else reaches them; what it names goes first, so that a walk
    /// that is broken off finds it again. False when the budget is used up before the end.
    fn take_apart(&mut self, id: BlockId, level: Option<u8>) -> Result<bool, Halt> {
        if self.budget == 0 {
            return Ok(false);
        }
        self.budget -= 1;
        let (block, below) = match self.map.describe(id, level) {
            Err(Halt::Lost(lost)) if !(self.is_gone)(lost) => {
                self.late_count += 1;
                return Ok(true);
            }
            // Freed before, or lost with all that only it could name.
            Err(Halt::Lost(_) | Halt::Failed(_)) => return Ok(true),
            outcome => outcome?,
        };
        if unreached(self.map.shelf, self.keepers, &[block], Loss::MayReach)?.is_empty() {
            return Ok(true);
        }
        let late_before = self.late_count;
        if block.level == Some(0) {
            let contents = unreached(self.map.shelf, self.keepers, &below, Loss::MayReach)?;
            self.free.extend(contents.into_iter().map(|contents| contents.id));
        } else if !self.take_children(&below)? {
            return Ok(false);
        }
        if self.late_count == late_before {
            self.free.push(id);
        }
        Ok(true)
    }

    fn take_children(&mut self, children: &[Dropped]) -> Result<bool, Halt> {
        let from = children.partition_point(|child| child.key <= self.cursor).saturating_sub(1);
        // Some of those that are skipped may be late.
        self.late_count += usize::from(from > 0 && self.had_late);
        let mut wants = Wants::default();
        for child in children.iter().skip(from) {
            let done = self.take_apart(child.id, child.level);
            if wants.of(done)? == Some(false) {
                // Where a block below was left in its midst, that is the place.
                self.cursor = self.cursor.max(child.key);
                wants.settle()?;
                return Ok(false);
            }
            if wants.len() >= AHEAD_MAX {
                break;
            }
        }
        wants.settle()?;
        Ok(true)
    }
}

/// Which of these blocks, just retrieved, nothing reaches: neither the present tree, nor a checkpoint, nor the table.
/// All must be older than the volume's root. What is late may reach all that it leads to. While a tree is being taken apart,
/// none is told.
pub(crate) fn strays(
    volume: &Volume,
    shelf: &Shelf<'_>,
    ids: &[BlockId],
    is_gone: &dyn Fn(BlockId) -> bool,
) -> Result<Vec<BlockId>, Halt> {
    let mut places = Vec::new();
    let mut strays = Vec::new();
    for id in ids.iter().filter(|_| volume.dying.is_empty()) {
        let block = match shelf.block(*id) {
            Err(Halt::Lost(_)) => continue,
            outcome => outcome?,
        };
        let place = match &*block {
            Block::Root(_) => None,
            Block::Contents { key, .. } => Some((*key, None)),
            Block::Head(items) => items.first().map(|item| (item.key, Some(0))),
            Block::Link { level, children } => children.first().map(|child| (child.key, Some(*level))),
        };
        match place {
            Some((key, level)) => places.push(Dropped { id: *id, key, level }),
            // Of roots only the present one counts.
            None => strays.push(*id),
        }
    }
    let is_of_table = |block: &Dropped| matches!(block.key.part, Part::Checkpoint | Part::Dying);
    let (of_table, of_files): (Vec<Dropped>, Vec<Dropped>) = places.into_iter().partition(is_of_table);
    let table: Vec<BlockId> = volume.root.table.into_iter().collect();
    let free = both(
        unreached(shelf, &table, &of_table, Loss::IsFinal(is_gone)),
        unreached(shelf, &keepers(volume), &of_files, Loss::IsFinal(is_gone)),
    )?;
    strays.extend(free.0.into_iter().chain(free.1).map(|block| block.id));
    Ok(strays)
}
