//! Copy on write: a new root for changed items, everything else shared with the old one.

use super::pack::{Entry, bytes_of, cut};
use super::{Map, Step};
use crate::block::{Block, Child, Item};
use crate::halt::{Halt, Wants};
use crate::id::{BlockId, Ids};
use crate::key::Key;
use crate::limits::LEVELS_MAX;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use wirefs_op::Errno;

/// A row of fewer bytes than this part of a block is joined with one beside it.
const SPARSE_DIVISOR: usize = 4;

/// A block that the new root reaches no more, and where the old one has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dropped {
    pub(crate) id: BlockId,
    /// The first key in it; for contents the key of the item that names it.
    pub(crate) key: Key,
    /// Its level; `None` for contents.
    pub(crate) level: Option<u8>,
}

/// What a rebuild comes to.
#[derive(Clone, Debug)]
pub(crate) struct Rebuilt {
    pub(crate) root: Option<BlockId>,
    /// New blocks, each behind those that it names.
    pub(crate) created: Vec<(BlockId, Arc<Block>)>,
    pub(crate) dropped: Vec<Dropped>,
}

/// A key and its new value, or none where it is to go.
type Edit = (Key, Option<Bytes>);

/// A row that is not in blocks yet.
struct Loose {
    row: Row,
    /// Something came behind its last entry, and is likely to be followed by more.
    grows_at_end: bool,
    /// It has become shorter.
    shrinks: bool,
}

enum Row {
    Items(Vec<Item>),
    /// Of a link block of this level.
    Children(u8, Vec<Child>),
}

/// A child of a link block that is being rebuilt.
enum Slot {
    Kept(Child),
    Loose(Loose),
}

struct Rebuild<'m> {
    map: Map<'m>,
    block_bytes: usize,
    ids: Ids,
    created: Vec<(BlockId, Arc<Block>)>,
    dropped: Vec<Dropped>,
}

/// Carries edits out. `ids` is moved on past the ids of new blocks.
///
/// # Cost
/// Reads and writes the path to each edited item, and one block beside each that has become sparse. Blocks beside each
/// other are waited for together.
///
/// # Errors
/// Blocks are needed or lost; an item is larger than a block.
pub(crate) fn rebuild(
    map: Map<'_>,
    edits: &BTreeMap<Key, Option<Bytes>>,
    ids: &mut Ids,
    block_bytes: usize,
) -> Result<Rebuilt, Halt> {
    let mut rebuild = Rebuild { map, block_bytes, ids: *ids, created: Vec::new(), dropped: Vec::new() };
    if edits.is_empty() {
        return Ok(Rebuilt { root: map.root, created: Vec::new(), dropped: Vec::new() });
    }
    let edits: Vec<Edit> = edits.iter().map(|(key, value)| (*key, value.clone())).collect();
    let loose = match map.start() {
        Some(step) => rebuild.loosen(step, &edits)?,
        None => edited(&[], &edits),
    };
    let root = rebuild.top(loose)?;
    *ids = rebuild.ids;
    Ok(Rebuilt { root, created: rebuild.created, dropped: rebuild.dropped })
}

impl Rebuild<'_> {
    /// Takes a block apart and carries out the edits below it.
    fn loosen(&mut self, step: Step, edits: &[Edit]) -> Result<Loose, Halt> {
        match &*self.map.node(step)? {
            Block::Head(items) => {
                let key = items.first().ok_or(Errno::Io)?.key;
                self.dropped.push(Dropped { id: step.id, key, level: Some(0) });
                Ok(edited(items, edits))
            }
            Block::Link { level, children } => {
                let key = children.first().ok_or(Errno::Io)?.key;
                let slots = self.loosen_children(*level, children, edits)?;
                let grows_at_end = matches!(slots.last(), Some(Slot::Loose(_)));
                let regrouped = self.regroup(*level, slots)?;
                let shrinks = regrouped.len() < children.len();
                self.dropped.push(Dropped { id: step.id, key, level: Some(*level) });
                Ok(Loose { row: Row::Children(*level, regrouped), grows_at_end, shrinks })
            }
            Block::Root(_) | Block::Contents { .. } => Err(Halt::Failed(Errno::Io)),
        }
    }

    fn loosen_children(&mut self, level: u8, children: &[Child], edits: &[Edit]) -> Result<Vec<Slot>, Halt> {
        let mut wants = Wants::default();
        let mut slots = Vec::with_capacity(children.len());
        let mut rest = edits;
        for (at, child) in children.iter().enumerate() {
            let end = match children.get(at + 1) {
                Some(next) => rest.partition_point(|(key, _)| *key < next.key),
                None => rest.len(),
            };
            let (here, later) = rest.split_at(end);
            rest = later;
            if here.is_empty() {
                slots.push(Slot::Kept(*child));
                continue;
            }
            let loosened = self.loosen(Step::down(level, child.id), here);
            slots.extend(wants.of(loosened)?.map(Slot::Loose));
        }
        wants.settle()?;
        Ok(slots)
    }

    /// Puts what was loosened below a link block into blocks again; rows beside each other together, sparse ones
    /// together with a neighbour.
    fn regroup(&mut self, level: u8, slots: Vec<Slot>) -> Result<Vec<Child>, Halt> {
        let mut joined: Vec<Slot> = Vec::with_capacity(slots.len());
        for slot in slots {
            match (joined.last_mut(), slot) {
                (Some(Slot::Loose(last)), Slot::Loose(next)) => last.append(next),
                (_, slot) => joined.push(slot),
            }
        }
        self.absorb_neighbours(level, &mut joined)?;
        let mut children = Vec::with_capacity(joined.len());
        for slot in joined {
            match slot {
                Slot::Kept(child) => children.push(child),
                Slot::Loose(loose) => children.extend(self.pack(loose)?),
            }
        }
        Ok(children)
    }

    fn absorb_neighbours(&mut self, level: u8, slots: &mut Vec<Slot>) -> Result<(), Halt> {
        let mut wants = Wants::default();
        let mut at = 0;
        while at < slots.len() {
            let is_sparse = matches!(slots.get(at), Some(Slot::Loose(loose)) if self.is_sparse(loose));
            // The one before, or else the one behind.
            let beside = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
            let mut kept = beside.filter_map(|beside| match slots.get(beside) {
                Some(Slot::Kept(child)) => Some((beside, *child)),
                Some(Slot::Loose(_)) | None => None,
            });
            if let (true, Some((beside, child))) = (is_sparse, kept.next()) {
                match self.loosen(Step::down(level, child.id), &[]) {
                    Ok(neighbour) => {
                        self.unite(slots, at.min(beside), neighbour, beside < at);
                        at = at.min(beside);
                    }
                    // What is lost stays where it is.
                    Err(Halt::Lost(_)) => {}
                    Err(halt) => {
                        wants.of::<()>(Err(halt))?;
                    }
                }
            }
            at += 1;
        }
        wants.settle()
    }

    /// Makes one row of the slots `first` and the one after it, one of which is kept and was loosened to `neighbour`.
    fn unite(&self, slots: &mut Vec<Slot>, first: usize, neighbour: Loose, is_before: bool) {
        let second = slots.remove(first + 1);
        let Some(slot) = slots.get_mut(first) else { return };
        match (is_before, second) {
            (true, Slot::Loose(sparse)) => {
                let mut united = neighbour;
                united.append(sparse);
                *slot = Slot::Loose(united);
            }
            (_, _) => {
                if let Slot::Loose(sparse) = slot {
                    sparse.append(neighbour);
                }
            }
        }
    }

    fn is_sparse(&self, loose: &Loose) -> bool {
        let bytes = match &loose.row {
            Row::Items(items) if !items.is_empty() => bytes_of(items),
            Row::Children(_, children) if !children.is_empty() => bytes_of(children),
            Row::Items(_) | Row::Children(_, _) => return false,
        };
        loose.shrinks && bytes < self.block_bytes / SPARSE_DIVISOR
    }

    /// Puts a row into new blocks.
    fn pack(&mut self, loose: Loose) -> Result<Vec<Child>, Halt> {
        match loose.row {
            Row::Items(items) => self.create(items, loose.grows_at_end, Block::Head),
            Row::Children(level, children) => {
                self.create(children, loose.grows_at_end, |children| Block::Link { level, children })
            }
        }
    }

    fn create<E: Entry>(
        &mut self,
        entries: Vec<E>,
        grows_at_end: bool,
        block: impl Fn(Vec<E>) -> Block,
    ) -> Result<Vec<Child>, Halt> {
        let mut children = Vec::new();
        for entries in cut(entries, grows_at_end, self.block_bytes).ok_or(Errno::TooBig)? {
            let key = entries.first().ok_or(Errno::Io)?.key();
            let id = self.ids.issue().ok_or(Errno::NoSpace)?;
            self.created.push((id, Arc::new(block(entries))));
            children.push(Child { key, id });
        }
        Ok(children)
    }

    /// Puts the topmost row into blocks, and as many link blocks over them as lead to one.
    fn top(&mut self, loose: Loose) -> Result<Option<BlockId>, Halt> {
        let (mut level, mut children) = match loose.row {
            // A link block with one child leads nowhere else.
            Row::Children(level, children) if children.len() == 1 => (level, children),
            Row::Children(level, _) => (level, self.pack(loose)?),
            Row::Items(_) => (0, self.pack(loose)?),
        };
        while children.len() > 1 {
            level += 1;
            if level > LEVELS_MAX {
                return Err(Halt::Failed(Errno::NoSpace));
            }
            let row = Row::Children(level, children);
            children = self.pack(Loose { row, grows_at_end: true, shrinks: false })?;
        }
        Ok(children.first().map(|child| child.id))
    }
}

impl Loose {
    /// Puts another row of the same level behind this one.
    fn append(&mut self, other: Loose) {
        match (&mut self.row, other.row) {
            (Row::Items(items), Row::Items(more)) => items.extend(more),
            (Row::Children(_, children), Row::Children(_, more)) => children.extend(more),
            // The children of one link block are of one level.
            (Row::Items(_), Row::Children(_, _)) | (Row::Children(_, _), Row::Items(_)) => {}
        }
        self.grows_at_end = other.grows_at_end;
        self.shrinks |= other.shrinks;
    }
}

/// The items of a head block with edits carried out.
fn edited(items: &[Item], edits: &[Edit]) -> Loose {
    let grows_at_end = match (items.last(), edits.first()) {
        (Some(last), Some((key, _))) => last.key < *key,
        (None, _) => true,
        (Some(_), None) => false,
    };
    let merged = merge(items, edits);
    let shrinks = bytes_of(&merged) < bytes_of(items);
    Loose { row: Row::Items(merged), grows_at_end, shrinks }
}

/// Items with edits carried out.
fn merge(items: &[Item], edits: &[Edit]) -> Vec<Item> {
    let mut merged = Vec::with_capacity(items.len() + edits.len());
    let mut rest = items.iter().peekable();
    for (key, value) in edits {
        while let Some(item) = rest.next_if(|item| item.key < *key) {
            merged.push(item.clone());
        }
        rest.next_if(|item| item.key == *key);
        merged.extend(value.clone().map(|value| Item { key: *key, value }));
    }
    merged.extend(rest.cloned());
    merged
}
