//! The part of a kernel's cache that a call concerns.

use super::Place;
use std::collections::BTreeSet;
use wirefs_client::call::{Call, Handle, STATELESS, TreeNodeId};

#[derive(Clone, Debug)]
pub(super) enum Matter {
    /// An entry, or its absence.
    Name(TreeNodeId, Vec<u8>),
    /// Attributes.
    Node(TreeNodeId),
    /// A listing; of an unopened directory, from this position on.
    Directory(TreeNodeId, Option<u64>),
    /// Contents, from this offset on.
    Contents(TreeNodeId, u64),
    /// Whether contents stay cached.
    Open(TreeNodeId),
    /// Own contents, up to this offset.
    Write(TreeNodeId, u64),
    /// Own changes: of names in these directories, and of attributes of these nodes.
    Change { names: Vec<Place>, nodes: Vec<TreeNodeId>, made: Option<Place> },
    /// A rename, which moves the cached name.
    Rename { from: Place, to: Place, is_exchange: bool },
}

impl Matter {
    pub(super) fn of(call: &Call<'_>, direct_io: &BTreeSet<Handle>) -> Option<Matter> {
        let name = |parent: TreeNodeId, name: &[u8]| (parent, name.to_vec());
        let change = |names: Vec<Place>, nodes: Vec<TreeNodeId>| Matter::Change { names, nodes, made: None };
        let makes = |place: Place, nodes: Vec<TreeNodeId>| Matter::Change {
            names: vec![place.clone()],
            nodes,
            made: Some(place),
        };
        Some(match *call {
            Call::Lookup { parent, name } => Matter::Name(parent, name.to_vec()),
            Call::Getattr { node, .. } => Matter::Node(node),
            Call::Readdir { node, handle, offset, .. } => {
                Matter::Directory(node, (handle == STATELESS).then_some(offset))
            }
            Call::Read { handle, .. } if direct_io.contains(&handle) => return None,
            Call::Read { node, offset, .. } => Matter::Contents(node, offset),
            Call::Open { node, .. } => Matter::Open(node),
            Call::Write { node, offset, data, .. } => Matter::Write(node, offset + data.len() as u64),
            Call::Setattr { node, .. } => change(vec![], vec![node]),
            Call::Create { parent, name: of, .. }
            | Call::Mkdir { parent, name: of, .. }
            | Call::Symlink { parent, name: of, .. } => makes(name(parent, of), vec![parent]),
            Call::Link { node, parent, name: of } => makes(name(parent, of), vec![parent, node]),
            Call::Unlink { parent, name: of } | Call::Rmdir { parent, name: of } => {
                change(vec![name(parent, of)], vec![parent])
            }
            Call::Rename { parent, name: of, to_parent, to_name, flags } => Matter::Rename {
                from: name(parent, of),
                to: name(to_parent, to_name),
                is_exchange: flags & 2 != 0,
            },
            _ => return None,
        })
    }

    pub(super) fn changes_names_in(&self) -> Vec<TreeNodeId> {
        match self {
            Matter::Change { names, .. } => names.iter().map(|(dir, _)| *dir).collect(),
            Matter::Rename { from, to, .. } => vec![from.0, to.0],
            Matter::Name(..)
            | Matter::Node(_)
            | Matter::Directory(..)
            | Matter::Contents(..)
            | Matter::Write(..)
            | Matter::Open(_) => vec![],
        }
    }

    /// Returns the directory of a lookup.
    pub(super) fn looks_in(&self) -> Option<TreeNodeId> {
        match self {
            Matter::Name(dir, _) | Matter::Directory(dir, _) => Some(*dir),
            Matter::Node(_)
            | Matter::Contents(..)
            | Matter::Open(_)
            | Matter::Write(..)
            | Matter::Change { .. }
            | Matter::Rename { .. } => None,
        }
    }

    /// Returns whether the call holds the lock of this directory, for which an invalidation waits.
    pub(super) fn locks(&self, dir: TreeNodeId) -> bool {
        self.looks_in() == Some(dir) || self.changes_names_in().contains(&dir)
    }
}
