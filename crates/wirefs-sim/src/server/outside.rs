//! Programs at the server, which use no mount.

use crate::program::NAMES;
use crate::server::plain::serve;
use crate::truth::By;
use crate::world::World;
use bytes::Bytes;
use wirefs_op::message::put::{Create, PutMode, Tput};
use wirefs_op::message::remove::Tremove;
use wirefs_op::message::rename::Trename;
use wirefs_op::message::target::{NOFD, Place, Target};
use wirefs_op::wire::Data;
use wirefs_op::{Cred, FileId, Kind, Request, SetStat, TreePath};
use wirefs_server::{SessionKey, Tree};

pub(crate) const OUTSIDE: SessionKey = SessionKey(u64::MAX - 1);

impl World {
    /// Executes a step of a program at the server.
    pub(crate) fn act_externally(&mut self) {
        let Some((path, dir)) = self.some_directory() else { return };
        let (name, other) = (self.dice.one_of(&NAMES), self.dice.one_of(&NAMES));
        let (Some(place), Some(to)) = (path.join(name), path.join(other)) else { return };
        let is_file = self.truth.present().name(dir, name).is_some_and(|id| self.is_file(id));
        let request = match self.dice.below(8) {
            0..2 => create(place),
            2 => Request::Remove(Tremove { place: Place { path: place, dir: None }, directory: false }),
            3 => Request::Rename(Trename {
                from: Place { path: place, dir: None },
                to: Place { path: to, dir: None },
                flags: 0,
            }),
            4 if is_file => {
                let set = SetStat { mode: Some(0o600 + self.dice.below(0o100) as u32), ..SetStat::default() };
                put(place, PutMode::STAT, set, Bytes::new())
            }
            _ if is_file => {
                let data = self.contents(usize::MAX, 40);
                put(place, PutMode::DATA, SetStat::default(), data)
            }
            _ => create(place),
        };
        self.note(|| format!("a program at the server: {request:?}"));
        self.serve_outside(request);
        let facts = self.truth.look(&self.server.tree, self.now, By::Outside);
        self.counts.outside += u64::from(!facts.is_empty());
        self.note(|| format!("which changes {facts:?}"));
        self.watch(&facts);
    }

    /// Serves a request of a separate session, which may be attached already.
    pub(crate) fn serve_outside(&mut self, request: Request) {
        if self.server.tree.attach(OUTSIDE, &TreePath::root()).is_ok() {
            serve(&self.server.tree, OUTSIDE, request);
        }
    }

    /// Returns requests for a directory with a file in it, and another file.
    pub(crate) fn initial_files(&mut self) -> Vec<Request> {
        let [a, .., d] = NAMES;
        let root = TreePath::root();
        let directory = root.join(d);
        let files = [root.join(a), directory.as_ref().and_then(|directory| directory.join(a))];
        let directory = directory.map(|path| make(path, Kind::Directory));
        directory.into_iter().chain(files.into_iter().flatten().map(create)).collect()
    }

    fn some_directory(&mut self) -> Option<(TreePath, FileId)> {
        let paths = &self.truth.present().paths;
        let at = self.dice.below(paths.len() as u64) as usize;
        paths.iter().nth(at).map(|(id, path)| (path.clone(), *id))
    }

    fn is_file(&self, id: FileId) -> bool {
        self.truth.present().objects.get(&id).is_some_and(|object| object.stat.kind == Kind::File)
    }
}

fn create(path: TreePath) -> Request {
    make(path, Kind::File)
}

pub(crate) fn make(path: TreePath, kind: Kind) -> Request {
    let cred = Cred { uid: 0, gid: 0, umask: 0 };
    let create = Create { kind, mode: 0o755, rdev: 0, cred };
    Request::Put(Tput {
        target: Target::at(path),
        mode: PutMode::CREATE.and(PutMode::EXCLUSIVE),
        create: Some(create),
        set: SetStat::default(),
        offset: 0,
        data: Data(Bytes::new()),
    })
}

fn put(path: TreePath, mode: PutMode, set: SetStat, data: Bytes) -> Request {
    Request::Put(Tput {
        target: Target { path, fd: NOFD, id: None },
        mode,
        create: None,
        set,
        offset: 0,
        data: Data(data),
    })
}
