//! One change: what it does to the present tree, up to the new root.

mod attributes;
mod checkpoints;
mod data;
mod names;
mod removal;
mod rename;
mod seal;
mod touched;
mod xattrs;

use crate::block::Block;
use crate::geometry::Geometry;
use crate::halt::Halt;
use crate::id::{BlockId, Ids};
use crate::item::Head;
use crate::key::{Ino, Key};
use crate::map::{Dropped, Map};
use crate::opens::Opens;
use crate::shelf::Shelf;
use crate::view::View;
use crate::volume::{Dying, Kept, Volume};
use bytes::Bytes;
pub(crate) use data::{CopyRange, Progress, check_end, check_file};
pub(crate) use names::New;
pub(crate) use rename::check_flags;
pub(crate) use seal::Sealed;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wirefs_op::{Errno, FileId, Timestamp};
pub(crate) use xattrs::check_name;

/// What a change begins with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Basis<'a> {
    pub(crate) volume: &'a Volume,
    pub(crate) shelf: &'a Shelf<'a>,
    pub(crate) opens: &'a Opens,
    pub(crate) geometry: Geometry,
    pub(crate) ids: Ids,
    pub(crate) now: Timestamp,
}

/// A change under way. Nothing of it is seen by anybody until it is sealed, registered, and its root switched to.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    pub(crate) view: View<'a>,
    basis: Basis<'a>,
    ids: Ids,
    next_group: u64,
    /// Contents that are named no more.
    dropped: Vec<Dropped>,
    /// Objects that lost their last name and whose parts are still there.
    orphaned: Vec<FileId>,
    /// Objects that lost or got a name.
    renamed: BTreeSet<Ino>,
    /// Objects without a name that got one.
    adopted: Vec<FileId>,
    /// Files that were cut off, with blocks left beyond their end.
    trimmed: Vec<FileId>,
    /// Edits of the table of checkpoints.
    table: BTreeMap<Key, Option<Bytes>>,
    checkpoints: Vec<Kept>,
    dying: Vec<Dying>,
    next_serial: u32,
    origin: u32,
    since: Option<BlockId>,
    /// The tree that takes the place of the present one.
    restored: Option<BlockId>,
}

impl<'a> Change<'a> {
    pub(crate) fn new(basis: Basis<'a>) -> Change<'a> {
        let Basis { volume, shelf, geometry, ids, .. } = basis;
        let map = Map { shelf, root: Some(volume.root.files) };
        Change {
            view: View::new(map, geometry, 0),
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
            dying: volume.dying.clone(),
            next_serial: volume.root.next_serial,
            origin: volume.root.origin,
            since: volume.root.since,
            restored: None,
        }
    }

    /// What it began with.
    pub(crate) fn basis(&self) -> &Basis<'a> {
        &self.basis
    }

    /// What objects that it touches have as their version: the number of this change.
    fn version(&self) -> u64 {
        self.basis.volume.root.change + 1
    }

    fn put(&mut self, key: Key, value: Option<Bytes>) {
        self.view.edits.insert(key, value);
    }

    fn put_head(&mut self, ino: Ino, head: &Head) {
        self.put(Key::head(ino), Some(head.encode()));
    }

    /// Notes a change of attributes.
    fn touch(&self, head: &mut Head) {
        head.ctime = self.basis.now;
        head.version = self.version();
    }

    /// Notes a change of contents.
    fn modify(&self, head: &mut Head) {
        self.touch(head);
        head.mtime = head.ctime;
    }

    fn id_of(ino: Ino, head: &Head) -> FileId {
        FileId { fs: 0, ino: ino.0, generation: head.generation }
    }

    /// Makes a contents block for the item at `key`.
    fn add_contents(&mut self, key: Key, data: Bytes) -> Result<BlockId, Halt> {
        let id = self.ids.issue().ok_or(Errno::NoSpace)?;
        self.view.fresh.insert(id, Arc::new(Block::Contents { key, data }));
        Ok(id)
    }

    /// Lets go of a contents block that the item at `key` named.
    fn drop_contents(&mut self, key: Key, id: BlockId) {
        // What this very change made, nobody has seen.
        if self.view.fresh.remove(&id).is_none() {
            self.dropped.push(Dropped { id, key, level: None });
        }
    }
}
