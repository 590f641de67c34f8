//! Access to private copies. An open file with such a copy reads and writes only the copy, without the server.

use super::{Files, Private};
use crate::call::{Answer, Handle, WriteData};
use wirefs_cache::TreeNodeId;
use wirefs_op::{Errno, SetStat, Stat};

const SEEK_DATA: u32 = 3;
const KEEP_SIZE: u32 = 1;
const PUNCH_HOLE: u32 = 2;

impl Files {
    /// Whether the open file has a private copy.
    pub(crate) fn is_copy(&self, handle: Handle) -> bool {
        self.copy_of(handle).is_some()
    }

    fn copy_of(&self, handle: Handle) -> Option<&Private> {
        self.open(handle)?.copy.as_ref()
    }

    /// Reads from a private copy; `None` if the open file has none.
    pub(crate) fn read_copy(&self, handle: Handle, offset: u64, count: u32) -> Option<Answer> {
        Some(Answer::Data(self.copy_of(handle)?.read(offset, u64::from(count))))
    }

    /// Writes into a private copy; `None` if the open file has none.
    pub(crate) fn write_copy(
        &mut self,
        (node, handle): (TreeNodeId, Handle),
        offset: u64,
        data: WriteData<'_>,
        append: bool,
    ) -> Option<Result<Answer, Errno>> {
        let size = self.copy_of(handle)?.size();
        let offset = if append { size } else { offset };
        let count = data.len() as u64;
        let Some(end) = offset.checked_add(count) else { return Some(Err(Errno::FileTooBig)) };
        if self.private_bytes() + count > self.private_bytes_max() {
            return Some(Err(Errno::NoSpace));
        }
        debug_assert!(end >= offset);
        self.write_to_copy(node, handle, |copy| copy.write(offset, data.to_bytes()));
        Some(Ok(Answer::Count(count as u32)))
    }

    fn write_to_copy(&mut self, node: TreeNodeId, handle: Handle, change: impl FnOnce(&mut Private)) {
        if self.change_copy(handle, change) {
            self.contents(node).written_by = Some(handle);
        }
    }

    /// The attributes of a file with a modified copy, for all programs: those of the copy that was written last.
    pub(crate) fn attributes_by_copy(&self, node: TreeNodeId, stat: &Stat) -> Option<Stat> {
        let handle = self.known(node)?.written_by?;
        let copy = self.copy_of(handle)?;
        copy.is_changed.then(|| Stat { size: copy.size(), ..*stat })
    }

    /// Sets the attributes that concern copies of the node. Returns those that are left for the server.
    pub(crate) fn set_by_copy(&mut self, node: TreeNodeId, handle: Option<Handle>, set: SetStat) -> SetStat {
        for open in self.handles_of(node).collect::<Vec<_>>() {
            if let Some(copy) = self.open_mut(open).and_then(|open| open.copy.as_mut()) {
                copy.set_times(&set);
            }
        }
        match (handle.filter(|handle| self.is_copy(*handle)), set.size) {
            (Some(handle), Some(size)) => {
                self.write_to_copy(node, handle, |copy| copy.resize(size));
                SetStat { size: None, ..set }
            }
            _ => set,
        }
    }

    /// Allocates or punches in a private copy; `None` if the open file has none.
    pub(crate) fn allocate_in_copy(
        &mut self,
        (node, handle): (TreeNodeId, Handle),
        (offset, length, mode): (u64, u64, u32),
    ) -> Option<Result<Answer, Errno>> {
        let size = self.copy_of(handle)?.size();
        let Some(end) = offset.checked_add(length) else { return Some(Err(Errno::FileTooBig)) };
        match mode {
            0 if end > size => self.write_to_copy(node, handle, |copy| copy.resize(end)),
            0 | KEEP_SIZE => {}
            _ if mode == PUNCH_HOLE | KEEP_SIZE => {
                self.write_to_copy(node, handle, |copy| copy.zero(offset, end));
            }
            _ => return Some(Err(Errno::NotSupported)),
        }
        Some(Ok(Answer::Done))
    }

    /// The offset of data or of a hole in a private copy, which is all data; `None` if the open file has none.
    pub(crate) fn seek_in_copy(
        &self,
        handle: Handle,
        offset: u64,
        whence: u32,
    ) -> Option<Result<Answer, Errno>> {
        let size = self.copy_of(handle)?.size();
        Some(match whence {
            _ if offset >= size => Err(Errno::NoSuchDevice),
            SEEK_DATA => Ok(Answer::Offset(offset)),
            _ => Ok(Answer::Offset(size)),
        })
    }

    /// Notes that a program of this mount removed the file's name: nothing is published there.
    pub(crate) fn publish_nowhere(&mut self, node: TreeNodeId) {
        for handle in self.handles_of(node).collect::<Vec<_>>() {
            if let Some(open) = self.open_mut(handle) {
                open.opened_by = None;
            }
        }
    }
}
