//! Reachability of single blocks.

use super::{Dropped, Map, Step, toward};
use crate::block::Block;
use crate::block_set::BlockSet;
use crate::halt::{Halt, Wants};
use crate::id::BlockId;
use crate::item::names_contents;
use wirefs_op::Errno;

impl Map<'_> {
    /// Returns whether this map contains a block that another map has, or had, at `block.key` on
    /// `block.level`.
    ///
    /// Such a block lies on the descent to the key. A parent is always newer than its children, so the
    /// descent ends at a block that is older.
    ///
    /// # Cost
    /// One retrieval for each level that is not in memory.
    pub(crate) fn reaches(&self, block: &Dropped) -> Result<bool, Halt> {
        let Some(mut step) = self.start() else { return Ok(false) };
        loop {
            if step.id == block.id {
                return Ok(true);
            }
            if step.id < block.id {
                return Ok(false);
            }
            match &*self.node(step)? {
                Block::Head(items) => {
                    let found = items.binary_search_by_key(&block.key, |item| item.key).ok();
                    let item = found.and_then(|at| items.get(at));
                    return Ok(match item {
                        Some(item) if block.level.is_none() => names_contents(item)?.contains(&block.id),
                        Some(_) | None => false,
                    });
                }
                Block::Index { level, .. } if block.level.is_some_and(|wanted| *level <= wanted) => {
                    return Ok(false);
                }
                Block::Index { level, children } => {
                    let child = children.get(toward(children, block.key)).ok_or(Errno::Io)?;
                    step = Step::down(*level, child.id);
                }
                Block::Root(_) | Block::Contents { .. } => return Err(Halt::Failed(Errno::Io)),
            }
        }
    }

    /// Returns the position of a head or index block, and those of its children.
    pub(crate) fn describe(&self, id: BlockId, level: Option<u8>) -> Result<(Dropped, Vec<Dropped>), Halt> {
        let mut named = Vec::new();
        let place = match &*self.node(Step { id, level })? {
            Block::Head(items) => {
                for item in items {
                    let contents = names_contents(item)?.into_iter();
                    named.extend(contents.map(|id| Dropped { id, key: item.key, level: None }));
                }
                items.first().map(|item| (item.key, 0))
            }
            Block::Index { level, children } => {
                let below = Some(*level - 1);
                named.extend(children.iter().map(|child| Dropped {
                    id: child.id,
                    key: child.key,
                    level: below,
                }));
                children.first().map(|child| (child.key, *level))
            }
            Block::Root(_) | Block::Contents { .. } => return Err(Halt::Failed(Errno::Io)),
        };
        let (key, level) = place.ok_or(Errno::Io)?;
        Ok((Dropped { id, key, level: Some(level) }, named))
    }
}

/// The effect of a lost block on the descent to another one.
#[derive(Clone, Copy)]
pub(crate) enum Loss<'a> {
    /// The other block counts as reachable: the lost one may return.
    MayReach,
    /// A lost block that is gone for good reaches nothing; a delayed one may return.
    IsFinal(&'a dyn Fn(BlockId) -> bool),
}

/// Returns the blocks that are reachable from none of the roots.
///
/// # Cost
/// The retrievals of one lookup, for any number of blocks and roots.
pub(crate) fn unreached(
    block_set: &BlockSet<'_>,
    roots: &[BlockId],
    blocks: &[Dropped],
    loss: Loss<'_>,
) -> Result<Vec<Dropped>, Halt> {
    let mut wants = Wants::default();
    let mut free = Vec::new();
    for block in blocks {
        let mut is_reached = false;
        for root in roots {
            let reaches = match (Map { block_set, root: Some(*root) }).reaches(block) {
                Err(Halt::Lost(lost)) => Some(match loss {
                    Loss::MayReach => true,
                    Loss::IsFinal(is_gone) => !is_gone(lost),
                }),
                Err(Halt::Failed(_)) => Some(true),
                outcome => wants.of(outcome)?,
            };
            is_reached = reaches == Some(true);
            if is_reached {
                break;
            }
        }
        if !is_reached {
            free.push(*block);
        }
    }
    wants.settle()?;
    Ok(free)
}
