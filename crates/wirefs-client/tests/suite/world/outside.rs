//! Programs at the server, and the watch that reports what they do.

use super::World;
use bytes::Bytes;
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::message::put::{Create, PutMode, Tput};
use wirefs_op::message::remove::Tremove;
use wirefs_op::message::target::{Place, Target};
use wirefs_op::wire::Data;
use wirefs_op::{Cred, FileId, Kind, Reply, Request, SetStat, Stat, TreePath};
use wirefs_server::{ExternalChange, ServerInput, SessionKey, Tree as _};

const PROGRAM: SessionKey = SessionKey(901);

fn path(path: &str) -> TreePath {
    TreePath::from_bytes(path.to_owned().into()).unwrap()
}

impl World {
    /// A program at the server creates a name exclusively; whether it got it.
    pub(crate) fn outside_creates(&mut self, name: &str, kind: Kind) -> bool {
        let create = Create { kind, mode: 0o755, rdev: 0, cred: Cred::default() };
        let put = Tput {
            target: Target::at(path(name)),
            mode: PutMode::CREATE.and(PutMode::EXCLUSIVE),
            create: Some(create),
            set: SetStat::default(),
            offset: 0,
            data: Data::default(),
        };
        matches!(self.outside(Request::Put(put))[..], [Reply::Put(_)])
    }

    /// A program at the server removes a name; whether it was there.
    pub(crate) fn outside_removes(&mut self, name: &str, directory: bool) -> bool {
        let place = Place { path: path(name), dir: None };
        matches!(self.outside(Request::Remove(Tremove { place, directory }))[..], [Reply::Remove(_)])
    }

    /// The attributes of what is at a path at the server.
    pub(crate) fn outside_stat(&mut self, name: &str) -> Stat {
        let target = Target::at(path(name));
        let get = Tget { target, mode: GetMode::STAT, nmsgs: 1, offset: 0, count: 0 };
        match self.outside(Request::Get(get)).pop() {
            Some(Reply::Get(got)) => got.stat.unwrap(),
            other => panic!("no attributes of {name}: {other:?}"),
        }
    }

    fn outside(&mut self, request: Request) -> Vec<Reply> {
        self.tree.attach(PROGRAM, &TreePath::root()).unwrap();
        super::serve(&self.tree, PROGRAM, request)
    }

    /// The watch reports a name that a program at the server has changed.
    pub(crate) fn report(&mut self, dir: FileId, name: &[u8]) {
        let name = Some(Bytes::copy_from_slice(name));
        self.handle(ServerInput::ExternalChange(ExternalChange::Changed { id: dir, name, version: None }));
    }
}
