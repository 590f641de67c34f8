//! Whether a root reaches a block.

use super::{Dropped, Map, Step, toward};
use crate::block::Block;
use crate::halt::{Halt, Wants};
use crate::id::BlockId;
use crate::item::names_contents;
use crate::shelf::Shelf;
use wirefs_op::Errno;

impl Map<'_> {
    /// Whether this map reaches a block that another one has, or had, at `block.key` on `block.level`.
    ///
    /// A block of this map on that level, with that first key, lies on the way to the key; and a block is always newer
    /// than what it names, so the walk ends where the way is older than the block.
    ///
    /// # Cost
    /// A block wait for each level that is not at hand.
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
                Block::Link { level, .. } if block.level.is_some_and(|wanted| *level <= wanted) => {
                    return Ok(false);
                }
                Block::Link { level, children } => {
                    let child = children.get(toward(children, block.key)).ok_or(Errno::Io)?;
                    step = Step::down(*level, child.id);
                }
                Block::Root(_) | Block::Contents { .. } => return Err(Halt::Failed(Errno::Io)),
            }
        }
    }

    /// Where a head or link block stands, and the blocks that it names.
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
            Block::Link { level, children } => {
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

/// What a lost block on the way to another one says about that.
#[derive(Clone, Copy)]
pub(crate) enum Loss<'a> {
    /// It may come back, and reach it.
    MayReach,
    /// It reaches nothing where it is gone for good; what is only late may come back.
    IsFinal(&'a dyn Fn(BlockId) -> bool),
}

/// Which of these blocks no root reaches.
///
/// # Cost
/// The waits of one look-up, whatever the number of blocks and roots.
pub(crate) fn unreached(
    shelf: &Shelf<'_>,
    roots: &[BlockId],
    blocks: &[Dropped],
    loss: Loss<'_>,
) -> Result<Vec<Dropped>, Halt> {
    let mut wants = Wants::default();
    let mut free = Vec::new();
    for block in blocks {
        let mut is_reached = false;
        for root in roots {
            let reaches = match (Map { shelf, root: Some(*root) }).reaches(block) {
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
