//! A sorted map in blocks: items in head blocks, found through link blocks. Never changed, only rebuilt along a path.

pub(crate) mod difference;
pub(crate) mod member;
mod pack;
mod rebuild;
#[cfg(test)]
mod tests;

use crate::block::{Block, Child, Item};
use crate::halt::{Halt, Wants};
use crate::id::BlockId;
use crate::key::Key;
use crate::limits::{AHEAD_MAX, HINTS_MAX};
use crate::shelf::Shelf;
use crate::store::Wanted;
use bytes::Bytes;
pub(crate) use rebuild::{Dropped, rebuild};
use std::ops::RangeInclusive;
use std::sync::Arc;
use wirefs_op::Errno;

/// A map as one root sees it. Without a root it is empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Map<'a> {
    pub(crate) shelf: &'a Shelf<'a>,
    pub(crate) root: Option<BlockId>,
}

/// Where a walk down has come to.
#[derive(Clone, Copy, Debug)]
struct Step {
    id: BlockId,
    /// The level that it must be on, where that is known: 0 for head blocks. So no chain of blocks is endless.
    level: Option<u8>,
}

impl Step {
    /// The step from a link block on `level` to one of its children.
    fn down(level: u8, id: BlockId) -> Step {
        Step { id, level: Some(level - 1) }
    }
}

/// The child to go on with for a key.
fn toward(children: &[Child], key: Key) -> usize {
    children.partition_point(|child| child.key <= key).saturating_sub(1)
}

impl<'a> Map<'a> {
    fn start(&self) -> Option<Step> {
        self.root.map(|id| Step { id, level: None })
    }

    /// A head or link block on the level where it must be.
    fn node(&self, step: Step) -> Result<Arc<Block>, Halt> {
        let block = self.shelf.block(step.id)?;
        let level = match &*block {
            Block::Head(_) => 0,
            Block::Link { level, .. } => *level,
            Block::Root(_) | Block::Contents { .. } => return Err(Halt::Failed(Errno::Io)),
        };
        let is_expected = step.level.is_none_or(|expected| expected == level);
        is_expected.then_some(block).ok_or(Halt::Failed(Errno::Io))
    }

    /// The value of a key.
    ///
    /// # Cost
    /// A block wait for each level that is not at hand.
    pub(crate) fn get(&self, key: Key) -> Result<Option<Bytes>, Halt> {
        let Some(mut step) = self.start() else { return Ok(None) };
        loop {
            match &*self.node(step)? {
                Block::Head(items) => {
                    let found = items.binary_search_by_key(&key, |item| item.key).ok();
                    return Ok(found.and_then(|at| items.get(at)).map(|item| item.value.clone()));
                }
                Block::Link { level, children } => {
                    let at = toward(children, key);
                    let child = children.get(at).ok_or(Errno::Io)?;
                    step = Step::down(*level, child.id);
                    if *level == 1 && !self.shelf.has(child.id) {
                        return Err(self.need_with_neighbours(child.id, children.get(at + 1..)));
                    }
                }
                Block::Root(_) | Block::Contents { .. } => return Err(Halt::Failed(Errno::Io)),
            }
        }
    }

    /// Asks for a head block, and for those behind it: they are likely to be of the same directory.
    fn need_with_neighbours(&self, id: BlockId, behind: Option<&[Child]>) -> Halt {
        let behind = behind.unwrap_or_default().iter().take(HINTS_MAX).map(|child| child.id);
        let hints = behind.filter(|id| !self.shelf.has(*id)).collect();
        Halt::Need(Wanted { hints, ..Wanted::of([id]) })
    }

    /// The items of a range, the first `limit` of them.
    ///
    /// # Cost
    /// As for `get`, and one wait more for each [`AHEAD_MAX`] blocks that the range covers.
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

struct Scan<'a, 'm> {
    map: &'m Map<'a>,
    range: RangeInclusive<Key>,
    limit: usize,
    items: Vec<Item>,
    wants: Wants,
}

impl Scan<'_, '_> {
    fn is_over(&self) -> bool {
        self.items.len() >= self.limit || self.wants.len() >= AHEAD_MAX
    }

    fn walk(&mut self, step: Step) -> Result<(), Halt> {
        let Some(node) = self.wants.of(self.map.node(step))? else { return Ok(()) };
        match &*node {
            Block::Head(items) => {
                let from = items.partition_point(|item| item.key < *self.range.start());
                let within = items.iter().skip(from).take_while(|item| item.key <= *self.range.end());
                self.items.extend(within.cloned());
            }
            Block::Link { level, children } => {
                let from = toward(children, *self.range.start());
                let behind =
                    children.iter().skip(from + 1).take_while(|child| child.key <= *self.range.end());
                let within = children.get(from..=from + behind.count()).unwrap_or_default();
                for (at, child) in within.iter().enumerate() {
                    if self.is_over() {
                        break;
                    }
                    if *level == 1 && !self.map.shelf.has(child.id) {
                        let need = self.map.need_with_neighbours(child.id, children.get(from + at + 1..));
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
