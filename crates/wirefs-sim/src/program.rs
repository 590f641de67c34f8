//! The programs of a client, which work through their kernel and its cache.

mod answers;
mod choice;
mod memory;
pub(crate) mod own;
mod start;

use own::OwnChange;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_client::call::{CallId, Entry, Handle, ROOT, TreeNodeId};
use wirefs_op::{FileId, Kind, LockKind, Time};

/// The names in each directory.
pub(crate) const NAMES: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];
/// Programs per client.
const THREADS: usize = 3;

/// A name in a directory, and the directory's id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) node: TreeNodeId,
    pub(crate) dir: FileId,
    pub(crate) name: &'static [u8],
}

/// A change of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renaming {
    Create,
    Mkdir,
    Symlink,
    Link(TreeNodeId),
    Unlink,
    Rmdir,
    /// A rename with the flags of `renameat2`.
    Rename(u32),
}

/// The way in which an open file is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    Fsync,
    Flush,
    Release,
}

/// One operation of a program.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Look(Place),
    Stat(TreeNodeId),
    Names(Renaming, Vec<Place>),
    Open(TreeNodeId, bool),
    /// Reads attributes, then contents.
    Read {
        node: TreeNodeId,
        handle: Handle,
        offset: u64,
        count: u32,
        has_attributes: bool,
    },
    Write {
        node: TreeNodeId,
        handle: Handle,
        own: usize,
    },
    Set {
        node: TreeNodeId,
        own: usize,
    },
    Close(TreeNodeId, Handle, Closing),
    /// Takes or releases a lock on a whole file.
    Lock(TreeNodeId, Handle, LockKind),
    List {
        node: TreeNodeId,
        dir: FileId,
        handle: Option<Handle>,
        offset: u64,
        listed: Vec<(Vec<u8>, FileId)>,
    },
    CloseList(TreeNodeId, Handle),
}

impl Operation {
    /// Returns the nodes that it uses.
    pub(crate) fn nodes(&self) -> Vec<TreeNodeId> {
        match self {
            Operation::Look(place) => vec![place.node],
            Operation::Names(renaming, places) => {
                let linked = match renaming {
                    Renaming::Link(node) => Some(*node),
                    Renaming::Create
                    | Renaming::Mkdir
                    | Renaming::Symlink
                    | Renaming::Unlink
                    | Renaming::Rmdir
                    | Renaming::Rename(_) => None,
                };
                places.iter().map(|place| place.node).chain(linked).collect()
            }
            Operation::Stat(node)
            | Operation::Open(node, _)
            | Operation::Read { node, .. }
            | Operation::Write { node, .. }
            | Operation::Set { node, .. }
            | Operation::Close(node, ..)
            | Operation::Lock(node, ..)
            | Operation::List { node, .. }
            | Operation::CloseList(node, _) => vec![*node],
        }
    }
}

/// A program with a pending operation.
#[derive(Clone, Debug)]
pub(crate) struct Busy {
    pub(crate) operation: Operation,
    pub(crate) began: Time,
    /// The pending call.
    call: Option<CallId>,
}

/// An open file.
#[derive(Clone, Copy, Debug)]
struct Open {
    node: TreeNodeId,
    handle: Handle,
    writes: bool,
}

/// The last lock on a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Locked {
    /// The time of the grant by the server, or before.
    pub(crate) granted: Time,
    /// The time of the answer to its program.
    pub(crate) answered: Time,
}

/// The state of the programs of one client.
#[derive(Debug, Default)]
pub(crate) struct Program {
    threads: Vec<Option<Busy>>,
    pub(crate) nodes: BTreeMap<TreeNodeId, (FileId, Kind)>,
    lookups: BTreeMap<TreeNodeId, u64>,
    handles: Vec<Open>,
    pub(crate) own: Vec<OwnChange>,
    /// The last lock on each file, held or released: nothing that is read later is older than its grant.
    pub(crate) locked: BTreeMap<FileId, Locked>,
    /// A change of names was abandoned, and may be applied later.
    pub(crate) has_given_up: bool,
    /// The node that was looked up last.
    pub(crate) found: Option<TreeNodeId>,
}

impl Program {
    pub(crate) fn new(root: FileId) -> Program {
        Program {
            threads: (0..THREADS).map(|_| None).collect(),
            nodes: BTreeMap::from([(ROOT, (root, Kind::Directory))]),
            ..Program::default()
        }
    }

    /// Returns the programs with pending operations.
    pub(crate) fn busy(&self) -> impl Iterator<Item = &Busy> {
        self.threads.iter().flatten()
    }

    fn uses(&self, node: TreeNodeId) -> bool {
        self.busy().any(|busy| busy.operation.nodes().contains(&node))
            || self.handles.iter().any(|open| open.node == node)
    }

    /// Returns whether a program writes the file or changes its attributes: a kernel allows one at a time.
    fn is_writing(&self, node: TreeNodeId) -> bool {
        self.busy().any(|busy| match busy.operation {
            Operation::Write { node: of, .. } | Operation::Set { node: of, .. } => of == node,
            _ => false,
        })
    }

    fn is_reading(&self, node: TreeNodeId) -> bool {
        self.busy().any(|busy| matches!(busy.operation, Operation::Read { node: of, .. } if of == node))
    }

    fn is_renaming(&self) -> bool {
        self.busy().any(|busy| matches!(busy.operation, Operation::Names(..)))
    }

    fn place(&self, node: TreeNodeId, name: &'static [u8]) -> Option<Place> {
        let (dir, _) = *self.nodes.get(&node)?;
        Some(Place { node, dir, name })
    }

    /// Records a node from an answer.
    fn note_node(&mut self, entry: &Entry) {
        self.nodes.insert(entry.node, (entry.stat.id, entry.stat.kind));
        *self.lookups.entry(entry.node).or_default() += 1;
    }

    /// Returns the open files.
    pub(crate) fn opened(&self) -> Vec<(TreeNodeId, Handle)> {
        self.handles.iter().map(|open| (open.node, open.handle)).collect()
    }

    /// Records a failed call on a file, which reports the loss of all earlier writes to it.
    fn may_have_lost(&mut self, node: TreeNodeId) {
        let Some((file, _)) = self.nodes.get(&node).copied() else { return };
        self.own.iter_mut().filter(|own| own.file == file).for_each(|own| own.may_be_lost = true);
    }

    /// Returns whether this handle is open for writing.
    pub(crate) fn writes(&self, handle: Handle) -> bool {
        self.handles.iter().any(|open| open.handle == handle && open.writes)
    }

    /// Returns the handle with which a file was opened last.
    pub(crate) fn last_opened(&self, node: TreeNodeId) -> Option<Handle> {
        self.handles.iter().rev().find(|open| open.node == node).map(|open| open.handle)
    }

    /// Returns the known files.
    fn files(&self) -> BTreeSet<TreeNodeId> {
        let files = self.nodes.iter().filter(|(_, (_, kind))| *kind == Kind::File);
        files.map(|(node, _)| *node).collect()
    }
}
