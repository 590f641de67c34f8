//! One change: from the live tree to a new root.

mod affected;
mod attributes;
mod checkpoints;
mod data;
mod names;
mod removal;
mod rename;
mod seal;
mod xattrs;

use crate::block::Block;
use crate::block_set::BlockSet;
use crate::geometry::Geometry;
use crate::halt::Halt;
use crate::id::{BlockId, IdAllocator};
use crate::item::Head;
use crate::key::{Ino, Key};
use crate::map::{Dropped, Map};
use crate::opens::Opens;
use crate::view::View;
use crate::volume::{DestroyedTree, StoredCheckpoint, Volume};
use bytes::Bytes;
pub(crate) use data::{CopyRange, Progress, check_end, check_file};
pub(crate) use names::New;
pub(crate) use rename::check_flags;
pub(crate) use seal::Sealed;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, FileId, Timestamp};
pub(crate) use xattrs::check_name;

/// The state that a change starts from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Basis<'a> {
    pub(crate) volume: &'a Volume,
    pub(crate) block_set: &'a BlockSet<'a>,
    pub(crate) opens: &'a Opens,
    pub(crate) geometry: Geometry,
    pub(crate) boot: BootId,
    pub(crate) ids: IdAllocator,
    pub(crate) now: Timestamp,
}

/// A change in progress. It is invisible to readers until it is sealed, registered, and its root is switched
/// to.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    pub(crate) view: View<'a>,
    basis: Basis<'a>,
    ids: IdAllocator,
    next_group: u64,
    /// Contents blocks that are no longer referenced.
    dropped: Vec<Dropped>,
    /// Objects that lost their last name and still have items.
    orphaned: Vec<FileId>,
    /// Objects that gained or lost a name.
    renamed: BTreeSet<Ino>,
    /// Nameless objects that gained a name.
    adopted: Vec<FileId>,
    /// Truncated files that still have blocks beyond their end.
    trimmed: Vec<FileId>,
    /// Edits of the checkpoint table.
    table: BTreeMap<Key, Option<Bytes>>,
    checkpoints: Vec<StoredCheckpoint>,
    destroyed: Vec<DestroyedTree>,
    next_serial: u32,
    origin: u32,
    since: Option<BlockId>,
    /// The tree that replaces the live tree.
    restored: Option<BlockId>,
}

impl<'a> Change<'a> {
    pub(crate) fn new(basis: Basis<'a>) -> Change<'a> {
        let Basis { volume, block_set, geometry, boot, ids, .. } = basis;
        let map = Map { block_set, root: Some(volume.root.files) };
        Change {
            view: View::new(map, geometry, boot, 0),
            basis,
            ids,
            next_group: volume.root.next_group,
            dropped: Vec::new(),
            orphaned: Vec::new(),
            renamed: BTreeSet::new(),
            adopted: Vec::new(),
            trimmed: Vec::new(),
            table: BTreeMap::new(),
            checkpoints: volume.checkpoints.clone(),
            destroyed: volume.destroyed.clone(),
            next_serial: volume.root.next_serial,
            origin: volume.root.origin,
            since: volume.root.since,
            restored: None,
        }
    }

    /// The state that the change started from.
    pub(crate) fn basis(&self) -> &Basis<'a> {
        &self.basis
    }

    /// The version of objects that this change modifies: the number of the change.
    fn version(&self) -> u64 {
        self.basis.volume.root.change + 1
    }

    fn put(&mut self, key: Key, value: Option<Bytes>) {
        self.view.edits.insert(key, value);
    }

    fn put_head(&mut self, ino: Ino, head: &Head) {
        self.put(Key::head(ino), Some(head.encode()));
    }

    /// Updates `ctime` and version after a change of attributes.
    fn touch(&self, head: &mut Head) {
        head.ctime = self.basis.now;
        head.version = self.version();
    }

    /// Updates `mtime`, `ctime` and version after a change of contents.
    fn modify(&self, head: &mut Head) {
        self.touch(head);
        head.mtime = head.ctime;
    }

    fn id_of(ino: Ino, head: &Head) -> FileId {
        FileId { fs: 0, ino: ino.0, generation: head.generation }
    }

    /// Adds a contents block for the item at `key`.
    fn add_contents(&mut self, key: Key, data: Bytes) -> Result<BlockId, Halt> {
        let id = self.ids.allocate().ok_or(Errno::NoSpace)?;
        self.view.fresh.insert(id, Arc::new(Block::Contents { key, data }));
        Ok(id)
    }

    /// Removes the reference of the item at `key` to a contents block.
    fn drop_contents(&mut self, key: Key, id: BlockId) {
        // A block that this change itself created was never registered.
        if self.view.fresh.remove(&id).is_none() {
            self.dropped.push(Dropped { id, key, level: None });
        }
    }
}
