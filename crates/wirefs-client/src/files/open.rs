//! Open files, by handle, by node and by fd.

use crate::call::{Handle, OpenHow};
use std::collections::{BTreeMap, BTreeSet};
use wirefs_cache::{NodeId, ReadAhead};
use wirefs_op::Errno;
use wirefs_op::message::target::{Fd, NOFD};

/// One open file.
#[derive(Debug)]
pub(crate) struct Open {
    node: NodeId,
    /// The server's, or NOFD until one is needed.
    fd: Fd,
    pub(crate) how: OpenHow,
    /// An fd has been asked for.
    pub(crate) fd_asked: bool,
    pub(crate) ahead: ReadAhead,
    /// A write that failed after its caller went on; told once.
    pub(crate) error: Option<Errno>,
}

impl Open {
    pub(crate) fn node(&self) -> NodeId {
        self.node
    }

    /// The server's fd, or NOFD until one is needed.
    pub(crate) fn fd(&self) -> Fd {
        self.fd
    }
}

/// All open files.
///
/// INVARIANT: `by_node` has each of them, and no node without any; `by_fd` counts those that have an fd, `with_fd` all of these.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    files: BTreeMap<Handle, Open>,
    by_node: BTreeMap<NodeId, BTreeSet<Handle>>,
    by_fd: BTreeMap<Fd, usize>,
    with_fd: usize,
}

impl OpenFiles {
    /// Takes in a file opened under a handle that no other has.
    pub(super) fn insert(&mut self, handle: Handle, node: NodeId, how: OpenHow, fd: Fd) {
        let ahead = ReadAhead::default();
        let open = Open { node, fd: NOFD, how, fd_asked: false, ahead, error: None };
        self.files.insert(handle, open);
        self.by_node.entry(node).or_default().insert(handle);
        self.set_fd(handle, fd);
    }

    pub(super) fn remove(&mut self, handle: Handle) -> Option<Open> {
        let open = self.files.remove(&handle)?;
        if let Some(handles) = self.by_node.get_mut(&open.node) {
            handles.remove(&handle);
            if handles.is_empty() {
                self.by_node.remove(&open.node);
            }
        }
        self.uncount(open.fd);
        Some(open)
    }

    pub(super) fn get(&self, handle: Handle) -> Option<&Open> {
        self.files.get(&handle)
    }

    pub(super) fn get_mut(&mut self, handle: Handle) -> Option<&mut Open> {
        self.files.get_mut(&handle)
    }

    /// The handles of a node, in the order in which they were opened.
    pub(super) fn of_node(&self, node: NodeId) -> Vec<Handle> {
        self.by_node.get(&node).into_iter().flatten().copied().collect()
    }

    pub(super) fn is_open(&self, node: NodeId) -> bool {
        self.by_node.contains_key(&node)
    }

    /// The fd to name a node by: that of the handle, else that of any of its open files.
    pub(super) fn fd_for(&self, node: NodeId, handle: Option<Handle>) -> Fd {
        let fd_of = |handle: &Handle| self.files.get(handle).map(|open| open.fd).filter(|fd| *fd != NOFD);
        let any = || self.by_node.get(&node).and_then(|handles| handles.iter().find_map(fd_of));
        handle.as_ref().and_then(fd_of).or_else(any).unwrap_or(NOFD)
    }

    /// The nodes that are open and that no fd reaches, as a rule.
    pub(super) fn without_fd(&self) -> Vec<NodeId> {
        if self.files.len() == self.with_fd {
            return Vec::new();
        }
        self.by_node.keys().filter(|node| self.fd_for(**node, None) == NOFD).copied().collect()
    }

    /// Whether an open file goes by this fd.
    pub(super) fn is_used(&self, fd: Fd) -> bool {
        self.by_fd.contains_key(&fd)
    }

    /// The open file goes by this fd from now on.
    pub(super) fn set_fd(&mut self, handle: Handle, fd: Fd) {
        let Some(open) = self.files.get_mut(&handle) else { return };
        let before = std::mem::replace(&mut open.fd, fd);
        open.fd_asked = fd != NOFD;
        if fd != NOFD {
            *self.by_fd.entry(fd).or_default() += 1;
            self.with_fd += 1;
        }
        self.uncount(before);
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

    /// The server knows no fd any more.
    pub(super) fn forget_fds(&mut self) {
        self.by_fd.clear();
        self.with_fd = 0;
        for open in self.files.values_mut() {
            open.fd = NOFD;
            open.fd_asked = false;
        }
    }
}

#[cfg(test)]
mod tests;
