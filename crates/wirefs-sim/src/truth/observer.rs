//! Observes the tree as a separate session, which keeps every file open, so that it sees files without a name too.

use crate::server::plain::serve;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use wirefs_model::ModelTree;
use wirefs_op::listing::entries;
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::message::target::{Fd, NOFD, Target};
use wirefs_op::{FileId, Kind, Reply, Request, Stat, TreePath};
use wirefs_server::{SessionKey, Tree};

const OBSERVER: SessionKey = SessionKey(u64::MAX);

/// One object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) stat: Stat,
    /// The contents of a file.
    pub(crate) data: Bytes,
}

/// The tree at one time. Files that have lost their last name stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) objects: BTreeMap<FileId, Arc<Object>>,
    /// Names by directory.
    pub(crate) names: BTreeMap<FileId, BTreeMap<Vec<u8>, FileId>>,
    /// The path of each directory.
    pub(crate) paths: BTreeMap<FileId, TreePath>,
}

impl Snapshot {
    pub(crate) fn name(&self, dir: FileId, name: &[u8]) -> Option<FileId> {
        self.names.get(&dir)?.get(name).copied()
    }
}

/// The observing session.
pub(crate) struct Observer {
    fds: BTreeMap<FileId, Fd>,
    before: Snapshot,
    root: FileId,
}

impl Observer {
    pub(crate) fn new(tree: &ModelTree) -> Observer {
        // INVARIANT: the model's root is always a directory.
        let root =
            tree.attach(OBSERVER, &TreePath::root()).map_or_else(|_| unknown(), |attached| attached.root.id);
        Observer { fds: BTreeMap::new(), before: Snapshot::default(), root }
    }

    pub(super) fn root(&self) -> FileId {
        self.root
    }

    pub(crate) fn observe(&mut self, tree: &ModelTree) -> Snapshot {
        let mut snapshot = Snapshot::default();
        if let Some((stat, _, _)) = get(tree, Target::at(TreePath::root()), GetMode::STAT) {
            self.directory(tree, &mut snapshot, TreePath::root(), stat);
        }
        for (id, object) in std::mem::take(&mut self.before.objects) {
            if object.stat.kind == Kind::File && !snapshot.objects.contains_key(&id) {
                let fd = self.fds.get(&id).copied().unwrap_or(NOFD);
                let target = Target { path: TreePath::root(), fd, id: Some(id) };
                self.leaf(tree, &mut snapshot, target, &object);
            }
        }
        self.before = snapshot.clone();
        snapshot
    }

    /// Ends the session.
    pub(crate) fn ends(self, tree: &ModelTree) {
        tree.end(OBSERVER);
    }

    fn directory(&mut self, tree: &ModelTree, snapshot: &mut Snapshot, path: TreePath, stat: Stat) {
        snapshot.objects.insert(stat.id, Arc::new(Object { stat, data: Bytes::new() }));
        let mut names = BTreeMap::new();
        let listed = get(tree, Target::at(path.clone()), GetMode::DATA.and(GetMode::STAT));
        for entry in listed.and_then(|(_, _, listing)| entries(listing).ok()).unwrap_or_default() {
            let Some(below) = path.join(&entry.name) else { continue };
            names.insert(entry.name, entry.stat.id);
            if entry.stat.kind == Kind::Directory {
                self.directory(tree, snapshot, below, entry.stat);
                continue;
            }
            let fd = self.fds.get(&entry.stat.id).copied().unwrap_or(NOFD);
            let target = Target { path: below, fd, id: Some(entry.stat.id) };
            let same = self.before.objects.get(&entry.stat.id).cloned();
            match same.filter(|object| object.stat.version == entry.stat.version) {
                Some(object) => drop(snapshot.objects.insert(entry.stat.id, object)),
                None => self.read(tree, snapshot, target),
            }
        }
        snapshot.names.insert(stat.id, names);
        snapshot.paths.insert(stat.id, path);
    }

    /// Reads a file without a name.
    fn leaf(&mut self, tree: &ModelTree, snapshot: &mut Snapshot, target: Target, before: &Arc<Object>) {
        match get(tree, target.clone(), GetMode::STAT.and(GetMode::MORE)) {
            Some((stat, _, _)) if stat.version == before.stat.version => {
                snapshot.objects.insert(stat.id, Arc::clone(before));
            }
            Some(_) => self.read(tree, snapshot, target),
            None => {}
        }
    }

    fn read(&mut self, tree: &ModelTree, snapshot: &mut Snapshot, target: Target) {
        let Some((stat, fd, data)) = get(tree, target, GetMode::STAT.and(GetMode::MORE).and(GetMode::DATA))
        else {
            return;
        };
        self.fds.insert(stat.id, fd);
        snapshot.objects.insert(stat.id, Arc::new(Object { stat, data }));
    }
}

fn unknown() -> FileId {
    FileId { fs: 0, ino: 0, generation: 0 }
}

fn get(tree: &ModelTree, target: Target, mode: GetMode) -> Option<(Stat, Fd, Bytes)> {
    let get = Tget { target, mode, nmsgs: 0, offset: 0, count: u32::MAX };
    let mut first = None;
    let mut data = Vec::new();
    for reply in serve(tree, OBSERVER, Request::Get(get)) {
        let Reply::Get(got) = reply else { return None };
        first = first.or(got.stat.map(|stat| (stat, got.fd)));
        data.extend_from_slice(&got.data.0);
    }
    first.map(|(stat, fd)| (stat, fd, Bytes::from(data)))
}
