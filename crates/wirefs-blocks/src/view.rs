//! A tree of files as seen by an operation: a root overlaid with the edits of the operation.

mod data;
pub(crate) mod names;
mod xattrs;

use crate::block::{Block, Item};
use crate::geometry::Geometry;
use crate::halt::Halt;
use crate::id::BlockId;
use crate::item::Head;
use crate::key::{Ino, Key};
use crate::map::Map;
use bytes::Bytes;
pub(crate) use data::Hole;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, Stat};

/// A tree of files.
#[derive(Clone, Debug)]
pub(crate) struct View<'a> {
    pub(crate) map: Map<'a>,
    pub(crate) geometry: Geometry,
    boot: BootId,
    /// The file system id of its objects: 0 for the live tree, else the serial of a checkpoint.
    pub(crate) fs: u32,
    /// Edited items; `None` marks a deletion.
    pub(crate) edits: BTreeMap<Key, Option<Bytes>>,
    /// Contents blocks that this operation created.
    pub(crate) fresh: BTreeMap<BlockId, Arc<Block>>,
}

impl<'a> View<'a> {
    pub(crate) fn new(map: Map<'a>, geometry: Geometry, boot: BootId, fs: u32) -> View<'a> {
        View { map, geometry, boot, fs, edits: BTreeMap::new(), fresh: BTreeMap::new() }
    }

    pub(crate) fn get(&self, key: Key) -> Result<Option<Bytes>, Halt> {
        match self.edits.get(&key) {
            Some(edited) => Ok(edited.clone()),
            None => self.map.get(key),
        }
    }

    /// Returns the first `limit` items of a range.
    pub(crate) fn scan(&self, range: RangeInclusive<Key>, limit: usize) -> Result<Vec<Item>, Halt> {
        let edited = self.edits.range(range.clone()).count();
        // Enough to fill the limit even if all edits are deletions.
        let items = self.map.scan(range.clone(), limit.saturating_add(edited))?;
        if edited == 0 {
            return Ok(items);
        }
        // Items after the last one read are unknown.
        let end = match items.last() {
            Some(last) if items.len() == limit.saturating_add(edited) => last.key,
            Some(_) | None => *range.end(),
        };
        let mut merged: BTreeMap<Key, Option<Bytes>> =
            items.into_iter().map(|item| (item.key, Some(item.value))).collect();
        let edits = self.edits.range(*range.start()..=end);
        merged.extend(edits.map(|(key, value)| (*key, value.clone())));
        let left = merged.into_iter().filter_map(|(key, value)| Some(Item { key, value: value? }));
        Ok(left.take(limit).collect())
    }

    /// Returns the head of an object.
    ///
    /// # Errors
    /// `Stale`: no such object.
    pub(crate) fn head(&self, ino: Ino) -> Result<Head, Halt> {
        let value = self.get(Key::head(ino))?.ok_or(Errno::Stale)?;
        Ok(Head::decode(value)?)
    }

    pub(crate) fn stat(&self, ino: Ino) -> Result<Stat, Halt> {
        Ok(self.stat_of(ino, &self.head(ino)?))
    }

    pub(crate) fn stat_of(&self, ino: Ino, head: &Head) -> Stat {
        let version = self.version_of(head);
        Stat { version, ..head.stat(self.fs, ino, self.geometry.piece_bytes()) }
    }

    /// Returns the version of an object as it is sent. The stored one is a number of changes, which a power loss may
    /// take back.
    pub(crate) fn version_of(&self, head: &Head) -> u64 {
        self.boot.version(head.version)
    }

    /// Returns the data of a contents block.
    pub(crate) fn contents(&self, id: BlockId) -> Result<Bytes, Halt> {
        let block = match self.fresh.get(&id) {
            Some(block) => Arc::clone(block),
            None => self.map.block_set.block(id)?,
        };
        match &*block {
            Block::Contents { data, .. } => Ok(data.clone()),
            Block::Root(_) | Block::Head(_) | Block::Index { .. } => Err(Halt::Failed(Errno::Io)),
        }
    }
}
