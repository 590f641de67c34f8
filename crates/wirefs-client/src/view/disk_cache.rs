//! The disk cache, as far as the core knows it.

use crate::call::{CallId, Handle};
use crate::view::prefetch::window::Joined;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_cache::{CachePiece, TreeNodeId};

/// The outcome of a read from the disk cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// The piece, with a correct checksum.
    Data(Bytes),
    /// The piece is not cached; other pieces of this version of the file may be.
    Missing,
    /// No piece of this version of the file is cached.
    Nothing,
}

/// A call to start again once a piece was loaded, or is known to be missing.
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

/// The calls and reads that wait for a requested piece.
#[derive(Debug, Default)]
pub(crate) struct Loading {
    pub(crate) awaited: Vec<Awaited>,
    pub(crate) parked: Vec<Parked>,
}

/// The pieces of a file in the disk cache, as far as they are known.
#[derive(Debug)]
pub(crate) struct Pieces {
    pub(crate) version: u64,
    /// Whether any piece is cached.
    pub(crate) any: bool,
    /// The offsets of pieces that are not cached.
    pub(crate) missing: BTreeSet<u64>,
}

/// The known contents of the disk cache.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    pub(crate) is_on: bool,
    pub(crate) loading: BTreeMap<CachePiece, Loading>,
    /// INVARIANT: all nodes exist.
    pub(crate) known: BTreeMap<TreeNodeId, Pieces>,
}

impl Stored {
    /// Notes that a node was forgotten.
    pub(crate) fn node_forgotten(&mut self, node: TreeNodeId) {
        self.known.remove(&node);
    }

    /// Whether requested pieces have not arrived yet.
    pub(crate) fn is_loading(&self) -> bool {
        !self.loading.is_empty()
    }

    /// Whether a piece is known to be missing.
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
