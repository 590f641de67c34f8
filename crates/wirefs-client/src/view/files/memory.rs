//! The contents in memory, within their limit.

use super::private::{Base, Private};
use crate::call::Handle;
use crate::view::files::Files;
use bytes::Bytes;
use std::collections::{BTreeSet, VecDeque};
use wirefs_cache::{CachedRanges, TreeNodeId};
use wirefs_op::Stat;

/// The maximum number of cached pieces, since a small piece takes more memory than its bytes.
const NOTES_MAX: usize = 65_536;
/// The bytes of contents that stay cached regardless of names and listings, if the limit allows that many.
const LEAST_BYTES: usize = 1024 * 1024;

/// The maximum size of a cached hole, in bytes. It counts as much as data.
const HOLE_BYTES_MAX: u64 = 1024 * 1024;
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// The cached ranges, in the order of their eviction, and their limits.
#[derive(Debug)]
pub(super) struct Remembered {
    /// Cached ranges, oldest first: node, start, end.
    notes: VecDeque<(TreeNodeId, u64, u64)>,
    bytes: usize,
    bytes_max: usize,
    /// The part of `bytes_max` that names and listings leave.
    room: usize,
    /// Ranges read since the last call of [`Files::take_read`]; `None`: not recorded.
    read: Option<Vec<(TreeNodeId, u64, u64)>>,
}

impl Remembered {
    pub(super) fn new(bytes_max: usize) -> Remembered {
        Remembered { notes: VecDeque::new(), bytes: 0, bytes_max, room: bytes_max, read: None }
    }
}

impl Files {
    pub(crate) fn cached_bytes(&self) -> usize {
        self.remembered.bytes
    }

    /// Keeps the contents of a file of this size that was just opened. Returns false if they are incomplete in the
    /// cache, or too large.
    pub(crate) fn keep_as_opened(&mut self, handle: Handle, size: u64) -> bool {
        let Some(contents) = self.open.get(handle).and_then(|open| self.contents.get(&open.node())) else {
            return false;
        };
        let is_whole = contents.ranges.cached_to(0, size) >= size;
        is_whole && self.open.keep(handle, contents.ranges.clone(), size, self.remembered.bytes_max / 2)
    }

    /// How many bytes may be read ahead without evicting each other.
    pub(crate) fn read_ahead_bytes_max(&self) -> u64 {
        self.remembered.room as u64 / 2
    }

    /// Forgets all contents of a file.
    pub(crate) fn forget_contents(&mut self, node: TreeNodeId) {
        if let Some(contents) = self.contents.get_mut(&node) {
            self.remembered.bytes -= contents.ranges.bytes();
            contents.ranges.clear();
            contents.epoch += 1;
        }
    }

    /// Evicts a part of a file's contents, which stays valid.
    pub(crate) fn forget_part(&mut self, node: TreeNodeId, from: u64, to: u64) {
        self.change_ranges(node, |ranges| ranges.remove(from, to));
    }

    /// Evicts prefetched contents, unless they are in use.
    pub(crate) fn forget_ahead(&mut self, node: TreeNodeId) {
        if !self.open.is_open(node) && !self.is_writing(node) {
            self.forget_contents(node);
        }
    }

    /// Forgets contents from `size` on.
    pub(crate) fn truncate_contents(&mut self, node: TreeNodeId, size: u64) {
        self.change_ranges(node, |ranges| ranges.truncate(size));
        self.contents(node).epoch += 1;
    }

    /// Remembers bytes just written.
    pub(crate) fn remember_written(&mut self, node: TreeNodeId, offset: u64, data: Bytes) {
        let end = offset + data.len() as u64;
        self.change_ranges(node, |ranges| ranges.insert(offset, data));
        self.remembered.notes.push_back((node, offset, end));
        self.shrink();
    }

    /// Caches zeros for the hole between the former end of a file and data written after it.
    pub(crate) fn remember_hole(&mut self, node: TreeNodeId, from: u64, to: u64) {
        if to.saturating_sub(from) > HOLE_BYTES_MAX {
            return;
        }
        let mut at = from;
        while at < to {
            let end = to.min(at + ZEROS.len() as u64);
            let zeros = Bytes::from_static(&ZEROS).slice(..(end - at) as usize);
            self.remember_stored(node, at, &zeros);
            at = end;
        }
    }

    /// Notes what is read from now on, for [`Files::take_read`].
    pub(crate) fn note_read(&mut self) {
        self.remembered.read.get_or_insert_default();
    }

    /// The ranges read since the last call: node, start, end.
    pub(crate) fn take_read(&mut self) -> Vec<(TreeNodeId, u64, u64)> {
        self.remembered.read.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Remembers bytes just read, where nothing newer is known.
    pub(crate) fn remember_read(&mut self, node: TreeNodeId, offset: u64, data: &Bytes) {
        if let Some(read) = &mut self.remembered.read {
            read.push((node, offset, offset + data.len() as u64));
        }
        self.remember_stored(node, offset, data);
    }

    /// The same of bytes that are kept on disk already.
    pub(crate) fn remember_stored(&mut self, node: TreeNodeId, offset: u64, data: &Bytes) {
        self.change_ranges(node, |ranges| ranges.insert_missing(offset, data));
        self.remembered.notes.push_back((node, offset, offset + data.len() as u64));
        self.shrink();
    }

    /// Remembers all of a file.
    pub(super) fn put_whole(&mut self, node: TreeNodeId, whole: CachedRanges) {
        let end = whole.cached_to(0, u64::MAX);
        self.change_ranges(node, |ranges| *ranges = whole);
        self.remembered.notes.push_back((node, 0, end));
        self.shrink();
    }

    /// Whether open files may have kept contents.
    pub(crate) fn keeps_any(&self) -> bool {
        self.open.is_any_without_fd()
    }

    /// Bytes in the copies that open files have to themselves.
    pub(crate) fn private_bytes(&self) -> u64 {
        self.open.private_bytes()
    }

    /// How many there may be.
    pub(crate) fn private_bytes_max(&self) -> u64 {
        self.remembered.bytes_max as u64 / 2
    }

    /// The open file has a copy to itself from now on, made from a file with these attributes.
    pub(crate) fn set_copy(&mut self, handle: Handle, mut copy: Private, from: Option<&Stat>) {
        copy.base = from.map(Base::of);
        self.open.change_copy(handle, |own| *own = Some(copy));
    }

    /// Changes the copy that the open file has to itself; false where it has none.
    pub(crate) fn change_copy(&mut self, handle: Handle, change: impl FnOnce(&mut Private)) -> bool {
        self.open.change_copy(handle, |own| own.as_mut().map(change).is_some()).unwrap_or(false)
    }

    /// An own change of a file's attributes led from version `before` to this: the copies made from it are still of it.
    pub(crate) fn rebase(&mut self, node: TreeNodeId, before: u64, stat: &Stat) {
        for handle in self.open.of_node(node).collect::<Vec<_>>() {
            let copy = self.open.get_mut(handle).and_then(|open| open.copy.as_mut());
            if let Some(base) = copy.and_then(|copy| copy.base.as_mut()) {
                base.advance(before, stat);
            }
        }
    }

    fn change_ranges(&mut self, node: TreeNodeId, change: impl FnOnce(&mut CachedRanges)) {
        let contents = self.contents.entry(node).or_default();
        let before = contents.ranges.bytes();
        change(&mut contents.ranges);
        self.remembered.bytes = self.remembered.bytes - before + contents.ranges.bytes();
    }

    /// The bytes of contents that are remembered in any case.
    pub(crate) fn contents_bytes_min(&self) -> usize {
        let Remembered { bytes_max, .. } = self.remembered;
        (bytes_max / 8).max(bytes_max.min(LEAST_BYTES))
    }

    /// So many bytes are taken by all else: contents have what is left, and their least in any case.
    pub(crate) fn make_room_beside(&mut self, taken: usize) {
        let left = self.remembered.bytes_max.saturating_sub(taken);
        self.remembered.room = left.max(self.contents_bytes_min());
        self.forget_oldest();
    }

    fn forget_oldest(&mut self) {
        while self.remembered.bytes > self.remembered.room && self.forget_one() {}
    }

    /// Forgets the contents of the oldest note; false where there is none.
    fn forget_one(&mut self) -> bool {
        let Some((node, start, end)) = self.remembered.notes.pop_front() else {
            return false;
        };
        if self.contents.contains_key(&node) {
            self.change_ranges(node, |ranges| ranges.remove(start, end));
        }
        true
    }

    fn shrink(&mut self) {
        self.forget_oldest();
        if self.remembered.notes.len() > NOTES_MAX {
            self.thin_out_notes();
        }
    }

    /// Drops the notes of contents that were overwritten or forgotten since, then forgets the oldest contents until half of the notes
    /// are left.
    ///
    /// # Cost
    /// A pass over all notes, which the next half of `NOTES_MAX` notes share.
    fn thin_out_notes(&mut self) {
        let (contents, mut seen) = (&self.contents, BTreeSet::new());
        let mut notes = std::mem::take(&mut self.remembered.notes);
        // The newest note of a place counts.
        notes.make_contiguous().reverse();
        notes.retain(|(node, start, _)| {
            let known =
                contents.get(node).is_some_and(|known| known.ranges.cached_to(*start, start + 1) > *start);
            known && seen.insert((*node, *start))
        });
        notes.make_contiguous().reverse();
        self.remembered.notes = notes;
        while self.remembered.notes.len() > NOTES_MAX / 2 && self.forget_one() {}
    }
}

#[cfg(test)]
mod tests;
