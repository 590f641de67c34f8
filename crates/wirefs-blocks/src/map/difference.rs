//! The difference of two maps.

use super::{Map, Step};
use crate::block::Block;
use crate::halt::{Halt, Wants};
use crate::id::BlockId;
use crate::key::Key;
use crate::limits::{COMPARE_BATCH, DIFFERENCES_MAX};
use bytes::Bytes;
use std::collections::BTreeMap;
use wirefs_op::Errno;

/// The items that differ: each with its old and its new value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MapDifference {
    pub(crate) old: BTreeMap<Key, Bytes>,
    pub(crate) new: BTreeMap<Key, Bytes>,
}

/// A block that remains to be compared.
#[derive(Clone, Copy, Debug)]
struct Part {
    key: Key,
    id: BlockId,
    level: u8,
}

/// The remaining blocks of one map, a stack with the first block on top.
struct Side<'m> {
    map: &'m Map<'m>,
    parts: Vec<Part>,
}

impl<'m> Side<'m> {
    fn new(map: &'m Map<'m>) -> Result<Side<'m>, Halt> {
        let mut parts = Vec::new();
        if let Some(step) = map.start() {
            let (place, _) = map.describe(step.id, None)?;
            parts.push(Part { key: Key::MIN, id: step.id, level: place.level.unwrap_or_default() });
        }
        Ok(Side { map, parts })
    }

    /// Replaces the first block by its children, or moves its items to `items`.
    fn open(&mut self, items: &mut BTreeMap<Key, Bytes>, wants: &mut Wants) -> Result<(), Halt> {
        let Some(part) = self.parts.pop() else { return Ok(()) };
        let step = Step { id: part.id, level: Some(part.level) };
        let Some(node) = wants.of(self.map.node(step))? else { return Ok(()) };
        match &*node {
            Block::Head(found) => {
                items.extend(found.iter().map(|item| (item.key, item.value.clone())));
            }
            Block::Index { level, children } => {
                let parts = children.iter().rev();
                self.parts.extend(parts.map(|child| Part { key: child.key, id: child.id, level: level - 1 }));
            }
            Block::Root(_) | Block::Contents { .. } => return Err(Halt::Failed(Errno::Io)),
        }
        Ok(())
    }
}

/// Compares two maps and skips shared blocks.
///
/// A shared block has the same key and level in both maps. Both block sequences are traversed in key order,
/// and of two blocks at one key the higher is expanded first, so the traversals meet at each shared block.
///
/// # Errors
/// `Overflow`: too many differences. `Need` or `Lost` blocks.
pub(crate) fn compare(old: &Map<'_>, new: &Map<'_>) -> Result<MapDifference, Halt> {
    let (mut olds, mut news) = crate::halt::both(Side::new(old), Side::new(new))?;
    let mut unlike = MapDifference::default();
    let mut wants = Wants::default();
    while wants.len() < COMPARE_BATCH {
        match (olds.parts.last().copied(), news.parts.last().copied()) {
            (None, None) => break,
            (Some(old), Some(new)) if old.id == new.id => {
                olds.parts.pop();
                news.parts.pop();
            }
            (Some(old), Some(new)) => {
                let opens_old = old.key < new.key || (old.key == new.key && old.level >= new.level);
                let opens_new = new.key < old.key || (old.key == new.key && new.level >= old.level);
                if opens_old {
                    olds.open(&mut unlike.old, &mut wants)?;
                }
                if opens_new {
                    news.open(&mut unlike.new, &mut wants)?;
                }
            }
            (Some(_), None) => olds.open(&mut unlike.old, &mut wants)?,
            (None, Some(_)) => news.open(&mut unlike.new, &mut wants)?,
        }
        if unlike.old.len().max(unlike.new.len()) > DIFFERENCES_MAX {
            return Err(Halt::Failed(Errno::Overflow));
        }
    }
    wants.settle()?;
    let MapDifference { mut old, mut new } = unlike;
    old.retain(|key, value| match new.get(key) {
        Some(other) if other == value => {
            new.remove(key);
            false
        }
        Some(_) | None => true,
    });
    Ok(MapDifference { old, new })
}
