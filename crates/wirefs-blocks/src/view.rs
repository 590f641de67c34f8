//! One tree of files as an operation sees it: a root, and over it what the operation itself has changed.

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
use wirefs_op::{Errno, Stat};

/// A tree of files.
#[derive(Clone, Debug)]
pub(crate) struct View<'a> {
    pub(crate) map: Map<'a>,
    pub(crate) geometry: Geometry,
    /// How ids say which tree it is: 0 for the present one, else a checkpoint's serial.
    pub(crate) fs: u32,
    /// What was changed: new values, or none where an item is gone.
    pub(crate) edits: BTreeMap<Key, Option<Bytes>>,
    /// Contents that were made by this operation.
    pub(crate) fresh: BTreeMap<BlockId, Arc<Block>>,
}

impl<'a> View<'a> {
    pub(crate) fn new(map: Map<'a>, geometry: Geometry, fs: u32) -> View<'a> {
        View { map, geometry, fs, edits: BTreeMap::new(), fresh: BTreeMap::new() }
    }

    pub(crate) fn get(&self, key: Key) -> Result<Option<Bytes>, Halt> {
        match self.edits.get(&key) {
            Some(edited) => Ok(edited.clone()),
            None => self.map.get(key),
        }
    }

    /// The items of a range, the first `limit` of them.
    pub(crate) fn scan(&self, range: RangeInclusive<Key>, limit: usize) -> Result<Vec<Item>, Halt> {
        let edited = self.edits.range(range.clone()).count();
        // So many that enough are left whatever was removed.
        let items = self.map.scan(range.clone(), limit.saturating_add(edited))?;
        if edited == 0 {
            return Ok(items);
        }
        // Behind the last item found there may be more in the tree than was asked for.
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

    /// The head of an object.
    ///
    /// # Errors
    /// `Stale`: there is no such object.
    pub(crate) fn head(&self, ino: Ino) -> Result<Head, Halt> {
        let value = self.get(Key::head(ino))?.ok_or(Errno::Stale)?;
        Ok(Head::decode(value)?)
    }

    pub(crate) fn stat(&self, ino: Ino) -> Result<Stat, Halt> {
        Ok(self.stat_of(ino, &self.head(ino)?))
    }

    pub(crate) fn stat_of(&self, ino: Ino, head: &Head) -> Stat {
        head.stat(self.fs, ino, self.geometry.piece_bytes())
    }

    /// The data of a contents block.
    pub(crate) fn contents(&self, id: BlockId) -> Result<Bytes, Halt> {
        let block = match self.fresh.get(&id) {
            Some(block) => Arc::clone(block),
            None => self.map.shelf.block(id)?,
        };
        match &*block {
            Block::Contents { data, .. } => Ok(data.clone()),
            Block::Root(_) | Block::Head(_) | Block::Link { .. } => Err(Halt::Failed(Errno::Io)),
        }
    }
}
