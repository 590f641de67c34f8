//! The disk cache, as far as the core knows it.

use crate::call::{CallId, Handle};
use crate::view::prefetch::window::Joined;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_cache::{CachePiece, TreeNodeId};

/// The outcome of a read from the disk cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// It was there and sound.
    Data(Bytes),
    /// It was not; other pieces of this version of the file may be.
    Missing,
    /// Nothing of this version of the file is there.
    Nothing,
}

/// A call to be started again once a piece is here, or known not to be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Parked {
    Open(Joined),
    Readlink { call: CallId, node: TreeNodeId },
}

/// A stretch of a file that waits for a piece; its node is held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Awaited {
    pub(crate) node: TreeNodeId,
    pub(crate) handle: Handle,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) epoch: u32,
}

/// A piece that was asked for.
#[derive(Debug, Default)]
pub(crate) struct Loading {
    pub(crate) awaited: Vec<Awaited>,
    pub(crate) parked: Vec<Parked>,
}

/// The pieces of a file in the disk cache, as far as they are known.
#[derive(Debug)]
pub(crate) struct Pieces {
    pub(crate) version: u64,
    /// Some are there.
    pub(crate) any: bool,
    /// Where those begin that are not.
    pub(crate) missing: BTreeSet<u64>,
}

/// The store, as far as it was asked.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    pub(crate) is_on: bool,
    pub(crate) loading: BTreeMap<CachePiece, Loading>,
    /// INVARIANT: of nodes that are there.
    pub(crate) known: BTreeMap<TreeNodeId, Pieces>,
}

impl Stored {
    /// The node is gone.
    pub(crate) fn node_forgotten(&mut self, node: TreeNodeId) {
        self.known.remove(&node);
    }

    /// Whether pieces were asked for that have not come.
    pub(crate) fn is_loading(&self) -> bool {
        !self.loading.is_empty()
    }

    /// Whether it is known that a piece is not there.
    pub(crate) fn lacks(&self, node: TreeNodeId, piece: &CachePiece) -> bool {
        self.known.get(&node).is_some_and(|pieces| {
            pieces.version == piece.version && (!pieces.any || pieces.missing.contains(&piece.offset))
        })
    }

    pub(crate) fn has_any(&self, node: TreeNodeId, version: u64) -> bool {
        self.known.get(&node).is_some_and(|pieces| pieces.version == version && pieces.any)
    }

    pub(crate) fn note(&mut self, node: TreeNodeId, piece: &CachePiece, loaded: &Loaded) {
        let fresh = || Pieces { version: piece.version, any: false, missing: BTreeSet::new() };
        let pieces = self.known.entry(node).or_insert_with(fresh);
        if pieces.version != piece.version {
            *pieces = fresh();
        }
        match loaded {
            Loaded::Data(_) => pieces.any = true,
            Loaded::Missing => {
                pieces.any = true;
                pieces.missing.insert(piece.offset);
            }
            Loaded::Nothing => pieces.any = false,
        }
    }
}
