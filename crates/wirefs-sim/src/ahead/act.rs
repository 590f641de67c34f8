//! The steps of the program on an exclusive mount, as calls of a kernel, which looks up each name first.

use super::believed::TreeImage;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use wirefs_client::call::{CallId, Handle, ROOT, TreeNodeId};
use wirefs_op::message::link::Tlink;
use wirefs_op::message::put::{Create, PutMode, Tput};
use wirefs_op::message::remove::Tremove;
use wirefs_op::message::rename::Trename;
use wirefs_op::message::target::{NOFD, Place, Target};
use wirefs_op::wire::Data;
use wirefs_op::{Cred, FileId, Kind, Request, SetStat, Time, TreePath};

/// A file that the program keeps open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Open {
    pub(crate) node: TreeNodeId,
    pub(crate) handle: Handle,
    /// Its id in the tree that the program believes in.
    pub(crate) id: FileId,
}

/// One step: a call, or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The kernel looks up a name.
    Look(TreePath),
    Stat(TreePath),
    /// Creates a file and keeps it open.
    Create(TreePath),
    Mkdir(TreePath),
    Symlink(TreePath),
    Remove(TreePath, Kind),
    Rename(TreePath, TreePath, u32),
    Link(TreePath, TreePath),
    Mode(TreePath, u32),
    Cut(TreePath, u64),
    Open(TreePath),
    /// Opens a file to append.
    OpenEnd(TreePath),
    /// Writes to the file that was opened last, or to one that is kept open.
    Write(u64, Bytes),
    Read,
    Flush,
    Fsync,
    Release,
    /// Keeps the file open.
    Keep,
    List(TreePath),
    /// Lists more of an open directory.
    ListOn(TreePath, Handle, u64, Vec<Vec<u8>>),
    ListEnd(TreePath, Handle),
    Syncfs,
}

/// The current task of the program.
#[derive(Debug)]
pub(crate) struct Task {
    pub(super) steps: VecDeque<Step>,
    /// The nodes at the paths.
    pub(super) nodes: BTreeMap<TreePath, TreeNodeId>,
    pub(super) open: Option<Open>,
    pub(super) call: Option<CallId>,
    pub(super) began: Time,
    /// The answer waits for the local disk instead of the server.
    pub(super) is_journaled: bool,
}

impl Task {
    pub(super) fn new(steps: Vec<Step>, open: Option<Open>, began: Time) -> Task {
        Task {
            steps: steps.into(),
            nodes: BTreeMap::from([(TreePath::root(), ROOT)]),
            open,
            call: None,
            began,
            is_journaled: false,
        }
    }

    /// Describes the task.
    pub(super) fn shown(&self) -> String {
        format!("{:?} since {}", self.steps.front(), self.began.0 / 1_000_000)
    }

    /// Returns the change that may be applied although it is not answered.
    pub(super) fn pending_change(&self, open: Option<&TreePath>) -> Option<Request> {
        self.call.and(self.steps.front()).and_then(|step| step.request(open))
    }

    pub(super) fn node(&self, path: &TreePath) -> Option<TreeNodeId> {
        self.nodes.get(path).copied()
    }
}

fn put(path: &TreePath, mode: PutMode) -> Tput {
    let set = SetStat::default();
    Tput { target: Target::at(path.clone()), mode, create: None, set, offset: 0, data: Data(Bytes::new()) }
}

fn make(path: &TreePath, kind: Kind, mode: u32, data: &'static [u8]) -> Request {
    let create = Create { kind, mode, rdev: 0, cred: Cred::default() };
    let create = Some(create);
    let data = Data(Bytes::from_static(data));
    Request::Put(Tput { create, data, ..put(path, PutMode::CREATE.and(PutMode::EXCLUSIVE)) })
}

fn place(path: &TreePath) -> Place {
    Place { path: path.clone(), dir: None }
}

pub(super) const TEXT: &[u8] = b"somewhere";

impl Step {
    /// Returns the request to the tree that the program believes in; `open` is the path of the open file.
    pub(super) fn request(&self, open: Option<&TreePath>) -> Option<Request> {
        Some(match self {
            Step::Create(path) => make(path, Kind::File, 0o644, b""),
            Step::Mkdir(path) => make(path, Kind::Directory, 0o755, b""),
            Step::Symlink(path) => make(path, Kind::Symlink, 0o777, TEXT),
            Step::Remove(path, kind) => {
                Request::Remove(Tremove { place: place(path), directory: *kind == Kind::Directory })
            }
            Step::Rename(from, to, flags) => {
                Request::Rename(Trename { from: place(from), to: place(to), flags: *flags })
            }
            Step::Link(from, to) => {
                let target = Target { path: from.clone(), fd: NOFD, id: None };
                Request::Link(Tlink { target, to: place(to) })
            }
            Step::Mode(path, mode) => {
                let set = SetStat { mode: Some(*mode), ..SetStat::default() };
                Request::Put(Tput { set, ..put(path, PutMode::STAT) })
            }
            Step::Cut(path, size) => {
                let set = SetStat { size: Some(*size), ..SetStat::default() };
                Request::Put(Tput { set, ..put(path, PutMode::STAT) })
            }
            Step::Write(offset, data) => {
                let data = Data(data.clone());
                Request::Put(Tput { offset: *offset, data, ..put(open?, PutMode::DATA) })
            }
            _ => return None,
        })
    }
}

/// Returns the lookups of all existing names on a path.
pub(super) fn lookups(tree_image: &TreeImage, path: &TreePath) -> Vec<Step> {
    let names: Vec<&[u8]> = path.names().collect();
    let mut steps = Vec::new();
    for count in 1..=names.len() {
        let Some(path) = TreePath::from_names(names.iter().take(count).copied()) else { break };
        let is_there = tree_image.contains_key(&path);
        steps.push(Step::Look(path));
        if !is_there {
            break;
        }
    }
    steps
}
