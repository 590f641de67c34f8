//! Own changes of files in progress, and the errors that their writers get.

use crate::call::Handle;
use crate::view::files::{Files, Stretch};
use wirefs_cache::TreeNodeId;
use wirefs_op::Errno;

impl Files {
    /// Whether own changes of the file are in progress.
    pub(crate) fn is_writing(&self, node: TreeNodeId) -> bool {
        self.contents.get(&node).is_some_and(|contents| contents.writes > 0)
    }

    /// Whether they are all such that what they make of the object is known.
    pub(crate) fn is_ahead(&self, node: TreeNodeId) -> bool {
        self.contents.get(&node).is_some_and(|contents| contents.writes > 0 && contents.is_ahead)
    }

    /// Keeps the cached attributes of the object valid until all own changes of it are answered.
    pub(crate) fn set_ahead(&mut self, node: TreeNodeId) {
        self.contents(node).is_ahead = true;
    }

    /// An object that was made under this version has that one at the server.
    pub(crate) fn identified(&mut self, node: TreeNodeId, made: u64, version: u64) {
        if let Some(contents) = self.contents.get_mut(&node) {
            for known in [&mut contents.version, &mut contents.kernel_version] {
                if *known == Some(made) {
                    *known = Some(version);
                }
            }
        }
    }

    /// Unacknowledged bytes, over all files.
    pub(crate) fn unacknowledged(&self) -> u64 {
        self.unacknowledged
    }

    /// Bytes that are written and not sent yet, over all files.
    pub(crate) fn coalesced_bytes(&self) -> usize {
        self.coalesced_bytes
    }

    /// Adds written data that is sent later. Returns whether there are at least `enough` bytes.
    pub(crate) fn coalesce(&mut self, node: TreeNodeId, written: Stretch, enough: u32) -> bool {
        let coalesced = &mut self.contents.entry(node).or_default().coalesced;
        self.coalesced_bytes -= coalesced.bytes();
        let is_enough = coalesced.add(written, enough);
        self.coalesced_bytes += coalesced.bytes();
        is_enough
    }

    /// Hands over what is to be sent.
    pub(crate) fn take_coalesced(&mut self, node: TreeNodeId) -> Vec<Stretch> {
        let coalesced = &mut self.contents.entry(node).or_default().coalesced;
        self.coalesced_bytes -= coalesced.bytes();
        coalesced.take()
    }

    /// Counts a write that is being sent.
    pub(crate) fn write_sent(&mut self, node: TreeNodeId, bytes: u64) {
        self.unacknowledged += bytes;
        let contents = self.contents(node);
        contents.writes += 1;
        contents.unacknowledged += bytes;
    }

    /// Notes a write that was answered, or failed.
    pub(crate) fn write_answered(&mut self, node: TreeNodeId, bytes: u64) {
        self.unacknowledged = self.unacknowledged.saturating_sub(bytes);
        let contents = self.contents(node);
        contents.writes = contents.writes.saturating_sub(1);
        contents.is_ahead &= contents.writes > 0;
        contents.unacknowledged = contents.unacknowledged.saturating_sub(bytes);
    }

    /// Notes that a write in progress extends the file to `end` at least.
    pub(crate) fn reaches(&mut self, node: TreeNodeId, end: u64) {
        *self.contents(node).ends.entry(end).or_default() += 1;
    }

    /// Notes that it was answered, or failed.
    pub(crate) fn reached(&mut self, node: TreeNodeId, end: u64) {
        let ends = &mut self.contents(node).ends;
        if let Some(count) = ends.get_mut(&end) {
            *count -= 1;
            if *count == 0 {
                ends.remove(&end);
            }
        }
    }

    /// The size that the file has for its writers when the server says `size`, behind the writes that it answered.
    pub(crate) fn size_for_writers(&self, node: TreeNodeId, size: u64) -> u64 {
        let Some(contents) = self.contents.get(&node) else { return size };
        let sent = contents.ends.last_key_value().map_or(0, |(end, _)| *end);
        size.max(sent).max(contents.coalesced.reaches())
    }

    /// Each open file of the node that may write tells of this error until an `fsync` through it has told it for good. Where there is
    /// none any more, the next `fsync` of the node does.
    pub(crate) fn write_failed(&mut self, node: TreeNodeId, errno: Errno) {
        let mut is_heard = false;
        for handle in self.open.of_node(node).collect::<Vec<_>>() {
            if let Some(open) = self.open.get_mut(handle).filter(|open| open.how.write) {
                open.error.get_or_insert(errno);
                is_heard = true;
            }
        }
        if !is_heard {
            self.unheard.entry(node).or_insert(errno);
        }
    }

    /// The error that the open file has to report.
    pub(crate) fn error(&self, handle: Handle) -> Option<Errno> {
        self.open.get(handle)?.error
    }

    /// The same, told for good.
    pub(crate) fn take_error(&mut self, handle: Handle) -> Option<Errno> {
        let open = self.open.get_mut(handle)?;
        let (node, own) = (open.node(), open.error.take());
        own.or_else(|| self.unheard.remove(&node))
    }

    /// Files with changes that the server's disk may not have.
    pub(crate) fn uncommitted(&self) -> Vec<TreeNodeId> {
        self.contents.iter().filter(|(_, contents)| contents.uncommitted).map(|(node, _)| *node).collect()
    }

    /// Reports that unstable writes of a file may be lost.
    pub(crate) fn lost_uncommitted(&mut self, node: TreeNodeId) {
        self.write_failed(node, Errno::Io);
        self.forget_contents(node);
        self.contents(node).uncommitted = false;
    }

    /// Bytes that are kept to be sent again, over all files.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.contents.values().map(|contents| contents.changes.bytes()).sum()
    }

    /// The files that they are of.
    pub(crate) fn kept_nodes(&self) -> Vec<TreeNodeId> {
        let kept = self.contents.iter().filter(|(_, contents)| contents.changes.bytes() > 0);
        kept.map(|(node, _)| *node).collect()
    }
}
