//! A persistent B-tree: items in head blocks, found through index blocks. It is never modified, only rebuilt
//! along a path.

pub(crate) mod difference;
pub(crate) mod member;
mod pack;
mod rebuild;
#[cfg(test)]
mod tests;

use crate::block::{Block, Child, Item};
use crate::block_set::BlockSet;
use crate::halt::{Halt, Wants};
use crate::id::BlockId;
use crate::key::Key;
use crate::limits::{HINTS_MAX, READAHEAD_MAX};
use crate::store::Wanted;
use bytes::Bytes;
pub(crate) use rebuild::{Dropped, rebuild};
use std::ops::RangeInclusive;
use std::sync::Arc;
use wirefs_op::Errno;

/// A map below one root. Without a root it is empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Map<'a> {
    pub(crate) block_set: &'a BlockSet<'a>,
    pub(crate) root: Option<BlockId>,
}

/// One step of a descent.
#[derive(Clone, Copy, Debug)]
struct Step {
    id: BlockId,
    /// The expected level, if known; 0 for head blocks. It guards against cycles in a corrupt tree.
    level: Option<u8>,
}

impl Step {
    /// The step from an index block on `level` to one of its children.
    fn down(level: u8, id: BlockId) -> Step {
        Step { id, level: Some(level - 1) }
    }
}

/// Returns the child that covers a key.
fn toward(children: &[Child], key: Key) -> usize {
    children.partition_point(|child| child.key <= key).saturating_sub(1)
}

impl<'a> Map<'a> {
    fn start(&self) -> Option<Step> {
        self.root.map(|id| Step { id, level: None })
    }

    /// Returns a head or index block; fails if it is on another level.
    fn node(&self, step: Step) -> Result<Arc<Block>, Halt> {
        let block = self.block_set.block(step.id)?;
        let level = match &*block {
            Block::Head(_) => 0,
            Block::Index { level, .. } => *level,
            Block::Root(_) | Block::Contents { .. } => return Err(Halt::Failed(Errno::Io)),
        };
        let is_expected = step.level.is_none_or(|expected| expected == level);
        is_expected.then_some(block).ok_or(Halt::Failed(Errno::Io))
    }

    /// Returns the value of a key.
    ///
    /// # Cost
    /// One retrieval for each level that is not in memory.
    pub(crate) fn get(&self, key: Key) -> Result<Option<Bytes>, Halt> {
        let Some(mut step) = self.start() else { return Ok(None) };
        loop {
            match &*self.node(step)? {
                Block::Head(items) => {
                    let found = items.binary_search_by_key(&key, |item| item.key).ok();
                    return Ok(found.and_then(|at| items.get(at)).map(|item| item.value.clone()));
                }
                Block::Index { level, children } => {
                    let at = toward(children, key);
                    let child = children.get(at).ok_or(Errno::Io)?;
                    step = Step::down(*level, child.id);
                    if *level == 1 && !self.block_set.has(child.id) {
                        return Err(self.need_with_neighbors(child.id, children.get(at + 1..)));
                    }
                }
                Block::Root(_) | Block::Contents { .. } => return Err(Halt::Failed(Errno::Io)),
            }
        }
    }

    /// Requests a head block, and its successors as hints: they are likely to belong to the same directory.
    fn need_with_neighbors(&self, id: BlockId, following: Option<&[Child]>) -> Halt {
        let following = following.unwrap_or_default().iter().take(HINTS_MAX).map(|child| child.id);
        let hints = following.filter(|id| !self.block_set.has(*id)).collect();
        Halt::Need(Wanted { hints, ..Wanted::of([id]) })
    }

    /// Returns the first `limit` items of a range.
    ///
    /// # Cost
    /// As `get`, and one retrieval for each [`READAHEAD_MAX`] further blocks of the range.
    pub(crate) fn scan(&self, range: RangeInclusive<Key>, limit: usize) -> Result<Vec<Item>, Halt> {
        let mut scan = Scan { map: self, range, limit, items: Vec::new(), wants: Wants::default() };
        if let Some(step) = self.start() {
            scan.walk(step)?;
        }
        scan.wants.settle()?;
        scan.items.truncate(limit);
        Ok(scan.items)
    }
}

/// A scan in progress.
struct Scan<'a, 'm> {
    map: &'m Map<'a>,
    range: RangeInclusive<Key>,
    limit: usize,
    items: Vec<Item>,
    wants: Wants,
}

impl Scan<'_, '_> {
    fn is_over(&self) -> bool {
        self.items.len() >= self.limit || self.wants.len() >= READAHEAD_MAX
    }

    fn walk(&mut self, step: Step) -> Result<(), Halt> {
        let Some(node) = self.wants.of(self.map.node(step))? else { return Ok(()) };
        match &*node {
            Block::Head(items) => {
                let from = items.partition_point(|item| item.key < *self.range.start());
                let within = items.iter().skip(from).take_while(|item| item.key <= *self.range.end());
                self.items.extend(within.cloned());
            }
            Block::Index { level, children } => {
                let from = toward(children, *self.range.start());
                let following =
                    children.iter().skip(from + 1).take_while(|child| child.key <= *self.range.end());
                let within = children.get(from..=from + following.count()).unwrap_or_default();
                for (at, child) in within.iter().enumerate() {
                    if self.is_over() {
                        break;
                    }
                    if *level == 1 && !self.map.block_set.has(child.id) {
                        let need = self.map.need_with_neighbors(child.id, children.get(from + at + 1..));
                        self.wants.of::<()>(Err(need))?;
                        continue;
                    }
                    self.walk(Step::down(*level, child.id))?;
                }
            }
            Block::Root(_) | Block::Contents { .. } => return Err(Halt::Failed(Errno::Io)),
        }
        Ok(())
    }
}
