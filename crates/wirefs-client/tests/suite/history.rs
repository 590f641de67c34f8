//! The state of the tree at each moment.

use crate::world::serve;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use wirefs_model::ModelTree;
use wirefs_op::listing::entries;
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::message::target::{Fd, NOFD, Target};
use wirefs_op::{FileId, Kind, Reply, Request, Stat, Time, TreePath};
use wirefs_server::{SessionKey, Tree};

const OBSERVER: SessionKey = SessionKey(u64::MAX);

/// One object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) stat: Stat,
    pub(crate) data: Bytes,
}

/// The tree at one moment. Files that lost their last name stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) objects: BTreeMap<FileId, Arc<Object>>,
    /// By directory and name.
    pub(crate) names: BTreeMap<FileId, BTreeMap<Vec<u8>, FileId>>,
}

impl Snapshot {
    pub(crate) fn name(&self, dir: FileId, name: &[u8]) -> Option<FileId> {
        self.names.get(&dir)?.get(name).copied()
    }
}

/// The tree at all moments, each until the next.
#[derive(Default)]
pub(crate) struct History(pub(crate) Vec<(Time, Snapshot)>);

impl History {
    pub(crate) fn push(&mut self, at: Time, snapshot: Snapshot) {
        self.0.push((at, snapshot));
    }

    pub(crate) fn last(&self) -> &Snapshot {
        &self.0.last().expect("recording began").1
    }
}

/// Looks at the tree as a session of its own, which keeps every file open.
pub(crate) struct Observer {
    fds: BTreeMap<FileId, Fd>,
    before: Snapshot,
    root: FileId,
}

impl Observer {
    pub(crate) fn new(tree: &ModelTree) -> Observer {
        let attached = tree.attach(OBSERVER, &TreePath::root()).unwrap();
        Observer { fds: BTreeMap::new(), before: Snapshot::default(), root: attached.root.id }
    }

    pub(crate) fn observe(&mut self, tree: &ModelTree) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let (stat, _, _) = get(tree, Target::at(TreePath::root()), GetMode::STAT);
        self.directory(tree, &mut snapshot, TreePath::root(), stat);
        for (id, object) in self.before.objects.clone() {
            if object.stat.kind == Kind::File && !snapshot.objects.contains_key(&id) {
                let target = Target { path: TreePath::root(), fd: self.fds[&id], id: Some(id) };
                let (stat, _, data) = get(tree, target, GetMode::STAT.and(GetMode::MORE).and(GetMode::DATA));
                snapshot.objects.insert(id, Arc::new(Object { stat, data }));
            }
        }
        self.before = snapshot.clone();
        snapshot
    }

    pub(crate) fn root(&self) -> FileId {
        self.root
    }

    fn directory(&mut self, tree: &ModelTree, snapshot: &mut Snapshot, path: TreePath, stat: Stat) {
        snapshot.objects.insert(stat.id, Arc::new(Object { stat, data: Bytes::new() }));
        let (_, _, listing) = get(tree, Target::at(path.clone()), GetMode::DATA.and(GetMode::STAT));
        let mut names = BTreeMap::new();
        for entry in entries(listing).unwrap() {
            let below = path.join(&entry.name).unwrap();
            names.insert(entry.name, entry.stat.id);
            match entry.stat.kind {
                Kind::Directory => self.directory(tree, snapshot, below, entry.stat),
                _ => self.leaf(tree, snapshot, below, entry.stat),
            }
        }
        snapshot.names.insert(stat.id, names);
    }

    fn leaf(&mut self, tree: &ModelTree, snapshot: &mut Snapshot, path: TreePath, stat: Stat) {
        let same = self.before.objects.get(&stat.id).filter(|object| object.stat.version == stat.version);
        if let Some(object) = same {
            snapshot.objects.insert(stat.id, Arc::clone(object));
            return;
        }
        let fd = self.fds.get(&stat.id).copied().unwrap_or(NOFD);
        let target = Target { path, fd, id: Some(stat.id) };
        let (stat, fd, data) = get(tree, target, GetMode::STAT.and(GetMode::MORE).and(GetMode::DATA));
        self.fds.insert(stat.id, fd);
        snapshot.objects.insert(stat.id, Arc::new(Object { stat, data }));
    }
}

fn get(tree: &ModelTree, target: Target, mode: GetMode) -> (Stat, Fd, Bytes) {
    let get = Tget { target, mode, nmsgs: 0, offset: 0, count: u32::MAX };
    let mut first = None;
    let mut data = Vec::new();
    for reply in serve(tree, OBSERVER, Request::Get(get)) {
        let Reply::Get(got) = reply else { panic!("{reply:?}") };
        first.get_or_insert((got.stat, got.fd));
        data.extend_from_slice(&got.data.0);
    }
    let (stat, fd) = first.unwrap();
    (stat.unwrap_or_else(blank), fd, Bytes::from(data))
}

fn blank() -> Stat {
    panic!("a reply without the attributes that were asked for")
}
