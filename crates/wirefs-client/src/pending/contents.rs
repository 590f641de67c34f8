//! Continuations of requests about the contents of files.

use super::continuation::{Affected, Continuation};
use crate::call::{CallId, Handle};
use bytes::BytesMut;
use wirefs_cache::TreeNodeId;

/// A read into the cache.
#[derive(Clone, Debug)]
pub(crate) struct Fetching {
    pub(crate) node: TreeNodeId,
    /// The open file that reads; `None`: the file is being opened.
    pub(crate) handle: Option<Handle>,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The offset of the next reply's data.
    pub(crate) at: u64,
    pub(crate) epoch: u32,
    /// The open file gets the fd that the reply brings.
    pub(crate) opens: bool,
    /// The reply is of the known version.
    pub(crate) is_known: bool,
}

impl Continuation for Fetching {
    fn leaves_fd(&self) -> bool {
        !self.opens
    }

    fn restart(&mut self) -> bool {
        self.at = self.start;
        true
    }
}

/// A read past the cache.
#[derive(Clone, Debug)]
pub(crate) struct Exact {
    pub(crate) call: CallId,
    pub(crate) handle: Handle,
    pub(crate) offset: u64,
    pub(crate) count: usize,
    pub(crate) received: BytesMut,
}

impl Continuation for Exact {
    fn leaves_fd(&self) -> bool {
        true
    }

    fn restart(&mut self) -> bool {
        self.received.clear();
        true
    }
}

/// One Tput of a write.
#[derive(Clone, Debug)]
pub(crate) struct Writing {
    pub(crate) node: TreeNodeId,
    pub(crate) bytes: u64,
    /// The end of the written range; `None` for an append.
    pub(crate) end: Option<u64>,
    /// The cached attributes already include the write.
    pub(crate) is_ahead: bool,
    /// The call that waits, and how many of its bytes earlier parts wrote. `None`: no call waits.
    pub(crate) waits: Option<(CallId, u32)>,
    /// The write bypasses the page cache, and the kernel may have read the former data into pages meanwhile.
    pub(crate) passes_pages: bool,
}

impl Writing {
    /// Whether no call waits.
    pub(crate) fn is_background(&self) -> bool {
        self.waits.is_none()
    }
}

impl Continuation for Writing {
    fn leaves_fd(&self) -> bool {
        true
    }

    fn change_of(&self) -> Option<CallId> {
        self.waits.map(|(call, _)| call)
    }

    fn affected(&self) -> Affected {
        Affected::node(self.node)
    }

    fn outlives_deadline(&self) -> bool {
        self.is_background()
    }
}

/// A fallocate.
#[derive(Clone, Debug)]
pub(crate) struct Allocating {
    pub(crate) call: CallId,
    pub(crate) node: TreeNodeId,
    /// The server may have cleared set-id bits without the kernel's knowledge.
    pub(crate) kills_privileges: bool,
}

impl Continuation for Allocating {
    fn change_of(&self) -> Option<CallId> {
        Some(self.call)
    }

    fn affected(&self) -> Affected {
        Affected::node(self.node)
    }
}

/// A copy between two files of the server.
#[derive(Clone, Debug)]
pub(crate) struct Copying {
    pub(crate) call: CallId,
    /// The file that is written.
    pub(crate) to: TreeNodeId,
    /// The server may have cleared set-id bits without the kernel's knowledge.
    pub(crate) kills_privileges: bool,
}

impl Continuation for Copying {
    fn change_of(&self) -> Option<CallId> {
        Some(self.call)
    }

    fn affected(&self) -> Affected {
        Affected::node(self.to)
    }
}

/// A seek to data or a hole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seeking(pub(crate) CallId);

impl Continuation for Seeking {}

/// A sync of an object to the server's disk.
#[derive(Clone, Debug)]
pub(crate) struct Committing {
    /// `None`: no call waits.
    pub(crate) call: Option<CallId>,
    pub(crate) node: TreeNodeId,
    pub(crate) handle: Option<Handle>,
    /// For a close, which leaves an error for a later fsync.
    pub(crate) closes: bool,
    /// For the whole file system: it includes the changes below this number.
    pub(crate) below: Option<u64>,
    /// For a directory: the number of the sync in [`crate::view::synced`].
    pub(crate) synced: Option<u64>,
}

impl Committing {
    /// A sync that no call waits for.
    pub(crate) fn of(node: TreeNodeId) -> Committing {
        Committing { call: None, node, handle: None, closes: false, below: None, synced: None }
    }
}

impl Continuation for Committing {}

/// A barrier. Later changes are sent without waiting for its reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Barrier {
    /// The rollback journal that the barrier is for.
    pub(crate) journal: TreeNodeId,
    /// The database that must not change on disk before the journal.
    pub(crate) database: TreeNodeId,
}

impl Continuation for Barrier {
    fn leaves_fd(&self) -> bool {
        true
    }

    fn outlives_deadline(&self) -> bool {
        true
    }
}
