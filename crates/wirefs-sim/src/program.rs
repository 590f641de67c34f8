//! Programs of a client: what they do through their kernel, which answers what it can from its memory.

mod answers;
mod choice;
mod memory;
pub(crate) mod own;
mod start;

use own::Own;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_client::call::{CallId, Entry, Handle, ROOT, TreeNodeId};
use wirefs_op::{FileId, Kind, LockKind, Time};

/// Names that the programs use in each directory.
pub(crate) const NAMES: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];
/// Programs of each client.
const THREADS: usize = 3;

/// A name in a directory, and which directory that is.
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
    /// With the flags of `renameat2`.
    Rename(u32),
}

/// How an open file is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    Fsync,
    Flush,
    Release,
}

/// One thing that a program does.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    Look(Place),
    Stat(TreeNodeId),
    Names(Renaming, Vec<Place>),
    Open(TreeNodeId, bool),
    /// The attributes are looked at first, then the contents.
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
    /// A lock on all of the file is taken or released.
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

impl Deed {
    /// The nodes that it uses.
    pub(crate) fn nodes(&self) -> Vec<TreeNodeId> {
        match self {
            Deed::Look(place) => vec![place.node],
            Deed::Names(renaming, places) => {
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
            Deed::Stat(node)
            | Deed::Open(node, _)
            | Deed::Read { node, .. }
            | Deed::Write { node, .. }
            | Deed::Set { node, .. }
            | Deed::Close(node, ..)
            | Deed::Lock(node, ..)
            | Deed::List { node, .. }
            | Deed::CloseList(node, _) => vec![*node],
        }
    }
}

/// A program that waits.
#[derive(Clone, Debug)]
pub(crate) struct Busy {
    pub(crate) deed: Deed,
    pub(crate) began: Time,
    /// Which call is under way.
    call: Option<CallId>,
}

/// An open file.
#[derive(Clone, Copy, Debug)]
struct Open {
    node: TreeNodeId,
    handle: Handle,
    writes: bool,
}

/// A lock on a file was had.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Locked {
    /// When the server granted it, or before.
    pub(crate) granted: Time,
    /// When its program went on.
    pub(crate) answered: Time,
}

/// What the programs of one client have and do.
#[derive(Debug, Default)]
pub(crate) struct Program {
    threads: Vec<Option<Busy>>,
    pub(crate) nodes: BTreeMap<TreeNodeId, (FileId, Kind)>,
    lookups: BTreeMap<TreeNodeId, u64>,
    handles: Vec<Open>,
    pub(crate) own: Vec<Own>,
    /// The last lock on each file, held or released: nothing that is read later is older than its grant.
    pub(crate) locked: BTreeMap<FileId, Locked>,
    /// A change of names was given up, and may be done later.
    pub(crate) has_given_up: bool,
    /// What was looked up last.
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

    /// Those that wait.
    pub(crate) fn busy(&self) -> impl Iterator<Item = &Busy> {
        self.threads.iter().flatten()
    }

    fn uses(&self, node: TreeNodeId) -> bool {
        self.busy().any(|busy| busy.deed.nodes().contains(&node))
            || self.handles.iter().any(|open| open.node == node)
    }

    /// Whether a program writes the file, or changes its attributes: a kernel lets one at a time.
    fn is_writing(&self, node: TreeNodeId) -> bool {
        self.busy().any(|busy| match busy.deed {
            Deed::Write { node: of, .. } | Deed::Set { node: of, .. } => of == node,
            _ => false,
        })
    }

    fn is_reading(&self, node: TreeNodeId) -> bool {
        self.busy().any(|busy| matches!(busy.deed, Deed::Read { node: of, .. } if of == node))
    }

    fn is_renaming(&self) -> bool {
        self.busy().any(|busy| matches!(busy.deed, Deed::Names(..)))
    }

    fn place(&self, node: TreeNodeId, name: &'static [u8]) -> Option<Place> {
        let (dir, _) = *self.nodes.get(&node)?;
        Some(Place { node, dir, name })
    }

    /// An answer brought a node.
    fn meets(&mut self, entry: &Entry) {
        self.nodes.insert(entry.node, (entry.stat.id, entry.stat.kind));
        *self.lookups.entry(entry.node).or_default() += 1;
    }

    /// The open files.
    pub(crate) fn opened(&self) -> Vec<(TreeNodeId, Handle)> {
        self.handles.iter().map(|open| (open.node, open.handle)).collect()
    }

    /// A call on the file has failed, which tells of all that was written to it before.
    fn may_have_lost(&mut self, node: TreeNodeId) {
        let Some((file, _)) = self.nodes.get(&node).copied() else { return };
        self.own.iter_mut().filter(|own| own.file == file).for_each(|own| own.may_be_lost = true);
    }

    /// Whether a file is open for writing by this handle.
    pub(crate) fn writes(&self, handle: Handle) -> bool {
        self.handles.iter().any(|open| open.handle == handle && open.writes)
    }

    /// Under which handle a file was opened last.
    pub(crate) fn last_opened(&self, node: TreeNodeId) -> Option<Handle> {
        self.handles.iter().rev().find(|open| open.node == node).map(|open| open.handle)
    }

    /// The files that it knows.
    fn files(&self) -> BTreeSet<TreeNodeId> {
        let files = self.nodes.iter().filter(|(_, (_, kind))| *kind == Kind::File);
        files.map(|(node, _)| *node).collect()
    }
}
