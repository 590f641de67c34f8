//! Copy-on-write update of the B-tree.

use super::pack::{Entry, bytes_of, cut};
use super::{Map, Step};
use crate::block::{Block, Child, Item};
use crate::halt::{Halt, Wants};
use crate::id::{BlockId, IdAllocator};
use crate::key::Key;
use crate::limits::LEVELS_MAX;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use wirefs_op::Errno;

/// A node smaller than this fraction of a block is merged with a neighbor.
const SPARSE_DIVISOR: usize = 4;

/// A block that the new root no longer references, with its position in the old tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dropped {
    pub(crate) id: BlockId,
    /// The first key of the block; for contents the key of the referring item.
    pub(crate) key: Key,
    /// The level of the block; `None` for contents.
    pub(crate) level: Option<u8>,
}

/// The result of a rebuild.
#[derive(Clone, Debug)]
pub(crate) struct Rebuilt {
    pub(crate) root: Option<BlockId>,
    /// New blocks, children before parents.
    pub(crate) created: Vec<(BlockId, Arc<Block>)>,
    pub(crate) dropped: Vec<Dropped>,
}

/// A key and its new value; `None` deletes the item.
type Edit = (Key, Option<Bytes>);

/// A node that is not packed into blocks yet.
struct UnpackedNode {
    row: Row,
    /// An entry was appended, and more are likely to follow.
    grows_at_end: bool,
    /// Entries were removed.
    shrinks: bool,
}

/// The entries of an unpacked node.
enum Row {
    Items(Vec<Item>),
    /// The children of an index block of this level.
    Children(u8, Vec<Child>),
}

/// A child of an index block that is being rebuilt.
enum Slot {
    Kept(Child),
    Unpacked(UnpackedNode),
}

/// An update in progress.
struct Rebuild<'m> {
    map: Map<'m>,
    block_bytes: usize,
    ids: IdAllocator,
    created: Vec<(BlockId, Arc<Block>)>,
    dropped: Vec<Dropped>,
}

/// Applies edits and returns the new root. Advances `ids` past the ids of new blocks.
///
/// # Cost
/// Reads and writes the path to each edited item, and one neighbor of each sparse node. Adjacent blocks are
/// retrieved together.
///
/// # Errors
/// `Need` or `Lost` blocks; an item is larger than a block.
pub(crate) fn rebuild(
    map: Map<'_>,
    edits: &BTreeMap<Key, Option<Bytes>>,
    ids: &mut IdAllocator,
    block_bytes: usize,
) -> Result<Rebuilt, Halt> {
    let mut rebuild = Rebuild { map, block_bytes, ids: *ids, created: Vec::new(), dropped: Vec::new() };
    if edits.is_empty() {
        return Ok(Rebuilt { root: map.root, created: Vec::new(), dropped: Vec::new() });
    }
    let edits: Vec<Edit> = edits.iter().map(|(key, value)| (*key, value.clone())).collect();
    let unpacked = match map.start() {
        Some(step) => rebuild.unpack(step, &edits)?,
        None => edited(&[], &edits),
    };
    let root = rebuild.pack_root(unpacked)?;
    *ids = rebuild.ids;
    Ok(Rebuilt { root, created: rebuild.created, dropped: rebuild.dropped })
}

impl Rebuild<'_> {
    /// Unpacks a block and applies the edits below it.
    fn unpack(&mut self, step: Step, edits: &[Edit]) -> Result<UnpackedNode, Halt> {
        match &*self.map.node(step)? {
            Block::Head(items) => {
                let key = items.first().ok_or(Errno::Io)?.key;
                self.dropped.push(Dropped { id: step.id, key, level: Some(0) });
                Ok(edited(items, edits))
            }
            Block::Index { level, children } => {
                let key = children.first().ok_or(Errno::Io)?.key;
                let slots = self.unpack_children(*level, children, edits)?;
                let grows_at_end = matches!(slots.last(), Some(Slot::Unpacked(_)));
                let repacked = self.repack(*level, slots)?;
                let shrinks = repacked.len() < children.len();
                self.dropped.push(Dropped { id: step.id, key, level: Some(*level) });
                Ok(UnpackedNode { row: Row::Children(*level, repacked), grows_at_end, shrinks })
            }
            Block::Root(_) | Block::Contents { .. } => Err(Halt::Failed(Errno::Io)),
        }
    }

    fn unpack_children(&mut self, level: u8, children: &[Child], edits: &[Edit]) -> Result<Vec<Slot>, Halt> {
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
            let unpacked = self.unpack(Step::down(level, child.id), here);
            slots.extend(wants.of(unpacked)?.map(Slot::Unpacked));
        }
        wants.settle()?;
        Ok(slots)
    }

    /// Repacks the unpacked children of an index block. Adjacent ones are packed together, sparse ones with a
    /// neighbor.
    fn repack(&mut self, level: u8, slots: Vec<Slot>) -> Result<Vec<Child>, Halt> {
        let mut joined: Vec<Slot> = Vec::with_capacity(slots.len());
        for slot in slots {
            match (joined.last_mut(), slot) {
                (Some(Slot::Unpacked(last)), Slot::Unpacked(next)) => last.append(next),
                (_, slot) => joined.push(slot),
            }
        }
        self.absorb_neighbors(level, &mut joined)?;
        let mut children = Vec::with_capacity(joined.len());
        for slot in joined {
            match slot {
                Slot::Kept(child) => children.push(child),
                Slot::Unpacked(unpacked) => children.extend(self.pack(unpacked)?),
            }
        }
        Ok(children)
    }

    fn absorb_neighbors(&mut self, level: u8, slots: &mut Vec<Slot>) -> Result<(), Halt> {
        let mut wants = Wants::default();
        let mut at = 0;
        while at < slots.len() {
            let is_sparse =
                matches!(slots.get(at), Some(Slot::Unpacked(unpacked)) if self.is_sparse(unpacked));
            // The preceding neighbor, or else the next.
            let beside = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
            let mut kept = beside.filter_map(|beside| match slots.get(beside) {
                Some(Slot::Kept(child)) => Some((beside, *child)),
                Some(Slot::Unpacked(_)) | None => None,
            });
            if let (true, Some((beside, child))) = (is_sparse, kept.next()) {
                match self.unpack(Step::down(level, child.id), &[]) {
                    Ok(neighbor) => {
                        self.merge_slots(slots, at.min(beside), neighbor, beside < at);
                        at = at.min(beside);
                    }
                    // A lost neighbor is not merged.
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

    /// Merges slot `first` with the next one. One of them was a block, now unpacked as `neighbor`.
    fn merge_slots(&self, slots: &mut Vec<Slot>, first: usize, neighbor: UnpackedNode, is_before: bool) {
        let second = slots.remove(first + 1);
        let Some(slot) = slots.get_mut(first) else { return };
        match (is_before, second) {
            (true, Slot::Unpacked(sparse)) => {
                let mut merged = neighbor;
                merged.append(sparse);
                *slot = Slot::Unpacked(merged);
            }
            (_, _) => {
                if let Slot::Unpacked(sparse) = slot {
                    sparse.append(neighbor);
                }
            }
        }
    }

    fn is_sparse(&self, unpacked: &UnpackedNode) -> bool {
        let bytes = match &unpacked.row {
            Row::Items(items) if !items.is_empty() => bytes_of(items),
            Row::Children(_, children) if !children.is_empty() => bytes_of(children),
            Row::Items(_) | Row::Children(_, _) => return false,
        };
        unpacked.shrinks && bytes < self.block_bytes / SPARSE_DIVISOR
    }

    /// Packs a node into new blocks.
    fn pack(&mut self, unpacked: UnpackedNode) -> Result<Vec<Child>, Halt> {
        match unpacked.row {
            Row::Items(items) => self.create(items, unpacked.grows_at_end, Block::Head),
            Row::Children(level, children) => {
                self.create(children, unpacked.grows_at_end, |children| Block::Index { level, children })
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
            let id = self.ids.allocate().ok_or(Errno::NoSpace)?;
            self.created.push((id, Arc::new(block(entries))));
            children.push(Child { key, id });
        }
        Ok(children)
    }

    /// Packs the topmost node, and adds index levels until one root remains.
    fn pack_root(&mut self, unpacked: UnpackedNode) -> Result<Option<BlockId>, Halt> {
        let (mut level, mut children) = match unpacked.row {
            // A root with a single child is redundant.
            Row::Children(level, children) if children.len() == 1 => (level, children),
            Row::Children(level, _) => (level, self.pack(unpacked)?),
            Row::Items(_) => (0, self.pack(unpacked)?),
        };
        while children.len() > 1 {
            level += 1;
            if level > LEVELS_MAX {
                return Err(Halt::Failed(Errno::NoSpace));
            }
            let row = Row::Children(level, children);
            children = self.pack(UnpackedNode { row, grows_at_end: true, shrinks: false })?;
        }
        Ok(children.first().map(|child| child.id))
    }
}

impl UnpackedNode {
    /// Appends another node of the same level.
    fn append(&mut self, other: UnpackedNode) {
        match (&mut self.row, other.row) {
            (Row::Items(items), Row::Items(more)) => items.extend(more),
            (Row::Children(_, children), Row::Children(_, more)) => children.extend(more),
            // Children of one index block have the same level.
            (Row::Items(_), Row::Children(_, _)) | (Row::Children(_, _), Row::Items(_)) => {}
        }
        self.grows_at_end = other.grows_at_end;
        self.shrinks |= other.shrinks;
    }
}

/// Returns the items of a head block after edits.
fn edited(items: &[Item], edits: &[Edit]) -> UnpackedNode {
    let grows_at_end = match (items.last(), edits.first()) {
        (Some(last), Some((key, _))) => last.key < *key,
        (None, _) => true,
        (Some(_), None) => false,
    };
    let merged = merge(items, edits);
    let shrinks = bytes_of(&merged) < bytes_of(items);
    UnpackedNode { row: Row::Items(merged), grows_at_end, shrinks }
}

/// Merges items with edits.
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
