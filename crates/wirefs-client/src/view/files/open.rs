//! Open files, by handle, by node and by fd.

use super::private::Private;
use super::server_handle::ServerHandle;
use crate::call::{Handle, OpenHow};
use std::collections::{BTreeMap, BTreeSet};
use wirefs_cache::{CachedRanges, ReadAhead, TreeNodeId};
use wirefs_op::Errno;
use wirefs_op::message::target::{Fd, NOFD};

/// One open file.
#[derive(Debug)]
pub(crate) struct Open {
    node: TreeNodeId,
    /// The server's handle.
    pub(crate) server: ServerHandle,
    pub(crate) how: OpenHow,
    pub(crate) ahead: ReadAhead,
    /// How it is written to.
    pub(crate) written: ReadAhead,
    /// All that it held when it was opened, and its size then, as long as it has no fd.
    pub(crate) as_opened: Option<(CachedRanges, u64)>,
    /// The name by which it was opened, where it is published if the file has another by then; `None`: it lost that by an own change.
    pub(crate) opened_by: Option<(TreeNodeId, Vec<u8>)>,
    /// Its private copy, in modes with private copies.
    pub(crate) copy: Option<Private>,
    /// A write that failed after its caller went on; told until an `fsync` has told it for good.
    pub(crate) error: Option<Errno>,
}

impl Open {
    pub(crate) fn node(&self) -> TreeNodeId {
        self.node
    }

    /// The server's fd, or NOFD until one is needed.
    pub(crate) fn fd(&self) -> Fd {
        self.server.fd()
    }

    /// Bytes of the kept contents.
    fn kept(&self) -> usize {
        self.as_opened.as_ref().map_or(0, |(ranges, _)| ranges.bytes())
    }
}

/// The open files of one node.
#[derive(Debug, Default)]
struct OfNode {
    handles: BTreeSet<Handle>,
    /// Those that have an fd.
    with_fd: BTreeSet<Handle>,
    /// How many append.
    appending: usize,
}

/// All open files. No operation on one of them walks the others of its node: programs open one file ten thousand times.
///
/// INVARIANT: `by_node` has each of them, and no node without any; `by_fd` counts those that have an fd, `with_fd` all of these.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    files: BTreeMap<Handle, Open>,
    by_node: BTreeMap<TreeNodeId, OfNode>,
    by_fd: BTreeMap<Fd, usize>,
    with_fd: usize,
    /// Bytes of kept contents of files without an fd.
    kept: usize,
    /// Bytes that open files have to themselves.
    private: u64,
}

impl OpenFiles {
    /// Takes in a file opened under a handle that no other has.
    pub(super) fn insert(&mut self, handle: Handle, node: TreeNodeId, how: OpenHow, fd: Fd) {
        let ahead = ReadAhead::default();
        let open = Open {
            node,
            server: ServerHandle::None,
            how,
            ahead,
            written: ahead,
            as_opened: None,
            opened_by: None,
            copy: None,
            error: None,
        };
        self.files.insert(handle, open);
        let of_node = self.by_node.entry(node).or_default();
        of_node.handles.insert(handle);
        of_node.appending += usize::from(how.append);
        self.set_fd(handle, fd);
    }

    pub(super) fn remove(&mut self, handle: Handle) -> Option<Open> {
        let open = self.files.remove(&handle)?;
        self.kept -= open.kept();
        self.private -= private_bytes(&open);
        if let Some(of_node) = self.by_node.get_mut(&open.node) {
            of_node.handles.remove(&handle);
            of_node.with_fd.remove(&handle);
            of_node.appending -= usize::from(open.how.append);
            if of_node.handles.is_empty() {
                self.by_node.remove(&open.node);
            }
        }
        self.uncount(open.fd());
        Some(open)
    }

    pub(super) fn get(&self, handle: Handle) -> Option<&Open> {
        #[cfg(test)]
        tests::LOOKUPS.set(tests::LOOKUPS.get() + 1);
        self.files.get(&handle)
    }

    pub(super) fn get_mut(&mut self, handle: Handle) -> Option<&mut Open> {
        self.files.get_mut(&handle)
    }

    /// The handles of a node, in the order in which they were opened.
    pub(super) fn of_node(&self, node: TreeNodeId) -> impl DoubleEndedIterator<Item = Handle> {
        self.by_node.get(&node).into_iter().flat_map(|of_node| &of_node.handles).copied()
    }

    pub(super) fn is_open(&self, node: TreeNodeId) -> bool {
        self.by_node.contains_key(&node)
    }

    /// Whether any open file of the node appends.
    pub(super) fn is_appended(&self, node: TreeNodeId) -> bool {
        self.by_node.get(&node).is_some_and(|of_node| of_node.appending > 0)
    }

    /// The fd to name a node by: that of the handle, else that of any of its open files.
    pub(super) fn fd_for(&self, node: TreeNodeId, handle: Option<Handle>) -> Fd {
        let fd_of = |handle: Handle| self.get(handle).map(Open::fd).filter(|fd| *fd != NOFD);
        let any =
            || self.by_node.get(&node).and_then(|of_node| of_node.with_fd.first().copied()).and_then(fd_of);
        handle.and_then(fd_of).or_else(any).unwrap_or(NOFD)
    }

    /// The nodes that are open and that no fd reaches, as a rule.
    pub(super) fn without_fd(&self) -> Vec<TreeNodeId> {
        if self.files.len() == self.with_fd {
            return Vec::new();
        }
        let without = self.by_node.iter().filter(|(_, of_node)| of_node.with_fd.is_empty());
        without.map(|(node, _)| *node).collect()
    }

    /// Whether an open file goes by this fd.
    pub(super) fn is_used(&self, fd: Fd) -> bool {
        self.by_fd.contains_key(&fd)
    }

    /// The open file goes by this fd from now on.
    pub(super) fn set_fd(&mut self, handle: Handle, fd: Fd) {
        let Some(open) = self.files.get_mut(&handle) else { return };
        let before = std::mem::replace(&mut open.server, ServerHandle::of(fd)).fd();
        if let Some(of_node) = self.by_node.get_mut(&open.node) {
            match fd {
                NOFD => of_node.with_fd.remove(&handle),
                _ => of_node.with_fd.insert(handle),
            };
        }
        if fd != NOFD {
            self.kept -= open.kept();
            open.as_opened = None;
            *self.by_fd.entry(fd).or_default() += 1;
            self.with_fd += 1;
        }
        self.uncount(before);
    }

    /// Keeps aside what the open file holds; false when that would be more than `bytes_max` for all of them.
    pub(super) fn keep(&mut self, handle: Handle, ranges: CachedRanges, size: u64, bytes_max: usize) -> bool {
        let fits = self.kept + ranges.bytes() <= bytes_max;
        if let Some(open) = self.files.get_mut(&handle).filter(|_| fits) {
            self.kept += ranges.bytes();
            open.as_opened = Some((ranges, size));
        }
        fits
    }

    fn uncount(&mut self, fd: Fd) {
        if let Some(count) = self.by_fd.get_mut(&fd) {
            *count -= 1;
            self.with_fd -= 1;
            if *count == 0 {
                self.by_fd.remove(&fd);
            }
        }
    }

    /// Whether any open file has no fd.
    pub(super) fn is_any_without_fd(&self) -> bool {
        self.files.len() != self.with_fd
    }

    /// Bytes that open files have to themselves.
    pub(super) fn private_bytes(&self) -> u64 {
        self.private
    }

    /// Changes what the open file has to itself. All that changes how many bytes that is goes through here.
    pub(super) fn change_copy<R>(
        &mut self,
        handle: Handle,
        change: impl FnOnce(&mut Option<Private>) -> R,
    ) -> Option<R> {
        let open = self.files.get_mut(&handle)?;
        self.private -= private_bytes(open);
        let outcome = change(&mut open.copy);
        self.private += private_bytes(open);
        Some(outcome)
    }

    /// The server knows no fd any more.
    pub(super) fn forget_fds(&mut self) {
        self.by_fd.clear();
        self.with_fd = 0;
        self.by_node.values_mut().for_each(|of_node| of_node.with_fd.clear());
        for open in self.files.values_mut() {
            open.server = ServerHandle::None;
        }
    }
}

fn private_bytes(open: &Open) -> u64 {
    open.copy.as_ref().map_or(0, |copy| copy.bytes() as u64)
}

#[cfg(test)]
mod tests;
