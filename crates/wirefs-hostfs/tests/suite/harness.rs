//! A directory, a tree over it, and short forms of requests.

use bytes::Bytes;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use wirefs_hostfs::{HostOptions, HostTree};
use wirefs_op::message::get::{GetMode, Rget, Tget};
use wirefs_op::message::put::{Create, PutMode, Rput, Tput};
use wirefs_op::message::remove::Tremove;
use wirefs_op::message::target::{Fd, NOFD, Place, Target};
use wirefs_op::wire::Data;
use wirefs_op::{Cred, DirEntry, Errno, FileId, Kind, Reply, Request, SetStat, Stat, TreePath};
use wirefs_server::{Replies, SessionKey, Stopped, Tree};

/// The longest wait for an expected event, in rounds of `wait`.
pub(crate) const ROUNDS_MAX: usize = 2000;

/// A directory that is removed afterwards.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("wirefs-hostfs-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir(&dir).unwrap();
        Scratch(dir)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Collects the replies of a tree.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) replies: Vec<Reply>,
    pub(crate) stopped: Arc<AtomicBool>,
    /// The number of times that a lock waited.
    pub(crate) waits: Arc<AtomicU64>,
}

impl Replies for Collected {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        if self.is_stopped() {
            return Err(Stopped);
        }
        self.replies.push(reply);
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    fn wait(&mut self) {
        self.waits.fetch_add(1, Ordering::SeqCst);
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// An exported directory `dir` beside an `outside` that must be unreachable.
pub(crate) struct World {
    pub(crate) scratch: Scratch,
    pub(crate) tree: HostTree,
}

/// The session of tests that need only one.
pub(crate) const FIRST: SessionKey = SessionKey(1);
pub(crate) const SECOND: SessionKey = SessionKey(2);

impl World {
    pub(crate) fn new() -> World {
        World::with(HostOptions::all_rights(), |_| ())
    }

    /// `prepare` fills the directory before it is exported.
    pub(crate) fn with(options: HostOptions, prepare: impl FnOnce(&Path)) -> World {
        let scratch = Scratch::new();
        let dir = scratch.path().join("dir");
        std::fs::create_dir(&dir).unwrap();
        prepare(&dir);
        let tree = HostTree::open(&dir, options).unwrap();
        for session in [FIRST, SECOND] {
            tree.attach(session, &TreePath::root()).unwrap();
        }
        World { scratch, tree }
    }

    /// Exports the directory anew, as after a restart of the server.
    pub(crate) fn restart(&mut self, options: HostOptions) {
        self.tree = HostTree::open(&self.host(""), options).unwrap();
        self.tree.attach(FIRST, &TreePath::root()).unwrap();
    }

    /// The host's path of an exported object.
    pub(crate) fn host(&self, path: &str) -> PathBuf {
        self.scratch.path().join("dir").join(path)
    }

    pub(crate) fn ask(&self, session: SessionKey, request: Request) -> Vec<Reply> {
        let mut collected = Collected::default();
        self.tree.serve(session, request, &mut collected);
        collected.replies
    }

    /// The only reply, or the error.
    pub(crate) fn ask_one(&self, session: SessionKey, request: Request) -> Result<Reply, Errno> {
        let mut replies = self.ask(session, request);
        assert_eq!(replies.len(), 1, "one reply expected, got {replies:?}");
        match replies.remove(0) {
            Reply::Error(error) => Err(error.errno),
            reply => Ok(reply),
        }
    }

    pub(crate) fn get(&self, session: SessionKey, request: Tget) -> Result<Vec<Rget>, Errno> {
        let replies = self.ask(session, Request::Get(request));
        replies
            .into_iter()
            .map(|reply| match reply {
                Reply::Get(got) => Ok(got),
                Reply::Error(error) => Err(error.errno),
                reply => panic!("not an answer to Tget: {reply:?}"),
            })
            .collect()
    }

    pub(crate) fn stat(&self, session: SessionKey, target: Target) -> Result<Stat, Errno> {
        let got = self.get(session, get(target, GetMode::STAT, 0, 0))?;
        Ok(got[0].stat.unwrap())
    }

    pub(crate) fn read(
        &self,
        session: SessionKey,
        target: Target,
        offset: u64,
        count: u32,
    ) -> Result<Vec<u8>, Errno> {
        let got = self.get(session, get(target, GetMode::DATA.and(GetMode::MORE), offset, count))?;
        Ok(got.iter().flat_map(|got| got.data.0.to_vec()).collect())
    }

    pub(crate) fn put(&self, session: SessionKey, request: Tput) -> Result<Rput, Errno> {
        match self.ask_one(session, Request::Put(request))? {
            Reply::Put(put) => Ok(put),
            reply => panic!("not an answer to Tput: {reply:?}"),
        }
    }

    pub(crate) fn remove(&self, session: SessionKey, path: &str) -> Result<(), Errno> {
        let request = Tremove { place: place(path), directory: false };
        self.ask_one(session, Request::Remove(request)).map(drop)
    }

    /// All entries of a directory.
    pub(crate) fn list(&self, session: SessionKey, target: Target) -> Result<Vec<DirEntry>, Errno> {
        let got = self.get(session, get(target, GetMode::DATA, 0, u32::MAX))?;
        let entries = got.into_iter().map(|got| wirefs_op::listing::entries(got.data.0).unwrap());
        Ok(entries.flatten().collect())
    }
}

pub(crate) fn path(path: &str) -> TreePath {
    TreePath::from_bytes(Bytes::copy_from_slice(path.as_bytes())).unwrap()
}

pub(crate) fn at(name: &str) -> Target {
    Target::at(path(name))
}

pub(crate) fn open_as(name: &str, fd: Fd, id: FileId) -> Target {
    Target { path: path(name), fd, id: Some(id) }
}

pub(crate) fn place(name: &str) -> Place {
    Place { path: path(name), dir: None }
}

pub(crate) fn get(target: Target, mode: GetMode, offset: u64, count: u32) -> Tget {
    Tget { target, mode, nmsgs: 0, offset, count }
}

/// A Tput without any effect yet.
pub(crate) fn put(target: Target, mode: PutMode) -> Tput {
    Tput { target, mode, create: None, set: SetStat::default(), offset: 0, data: Data(Bytes::new()) }
}

pub(crate) fn write(target: Target, offset: u64, data: &[u8]) -> Tput {
    Tput { offset, data: Data(Bytes::copy_from_slice(data)), ..put(target, PutMode::DATA) }
}

pub(crate) fn set(target: Target, set: SetStat) -> Tput {
    Tput { set, ..put(target, PutMode::STAT) }
}

/// The identity of the tests' own process.
pub(crate) fn own_cred(umask: u32) -> Cred {
    Cred { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw(), umask }
}

pub(crate) fn create(name: &str, kind: Kind, mode: u32, more: PutMode) -> Tput {
    create_as(name, kind, mode, own_cred(0o022), more)
}

pub(crate) fn create_as(name: &str, kind: Kind, mode: u32, cred: Cred, more: PutMode) -> Tput {
    Tput { create: Some(Create { kind, mode, rdev: 0, cred }), ..put(at(name), PutMode::CREATE.and(more)) }
}

/// Keeps the file open for reading and writing.
pub(crate) fn keep() -> PutMode {
    PutMode::MORE.and(PutMode::READ).and(PutMode::WRITE)
}

/// Fails a test that needs root.
pub(crate) fn need_root() {
    assert!(
        rustix::process::geteuid().is_root(),
        "this test mounts or acts for other users: run the tests as root (sudo make test)"
    );
}

pub(crate) fn is_open(fd: Fd) -> bool {
    fd != NOFD
}
