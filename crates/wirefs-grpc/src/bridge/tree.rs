//! The tree: each Op request as requests of the gate. Files are not open there: each request names its file.

use super::listings::Listings;
use super::lock::LockStream;
use super::remote::{Remote, path_message};
use crate::convert::stat_of;
use crate::failure::{Refusal, refusal};
use crate::proto;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tonic::Status;
use wirefs_carrier::Closer;
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, FileId, Kind, Reply, Request, Stat, TreePath};
use wirefs_server::{Attached, Replies, SessionKey, Stopped, Tree};

/// The tree of a gate.
pub(super) struct GateTree {
    remote: Remote,
    /// Ends the connection to the mount.
    closer: Closer,
    is_lost: AtomicBool,
    /// The directory below the gate's source.
    base: Vec<u8>,
    boot: BootId,
    sessions: Mutex<BTreeMap<SessionKey, Arc<Session>>>,
}

/// One session: where its paths begin, its unfinished listings by their directories, its locks.
pub(super) struct Session {
    root: TreePath,
    pub(super) listings: Mutex<Listings>,
    pub(super) locks: Mutex<Option<LockStream>>,
}

/// Why a request has no reply, or which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    Errno(Errno),
    Stopped,
    /// The gate is gone: the outcome is not known, and no reply is sent.
    Lost,
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Failure {
        Failure::Errno(errno)
    }
}

impl From<Stopped> for Failure {
    fn from(Stopped: Stopped) -> Failure {
        Failure::Stopped
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Failure {
        match refusal(&status) {
            Refusal::Errno(errno) => Failure::Errno(errno),
            Refusal::Lost => Failure::Lost,
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request's surroundings.
pub(super) struct At<'a> {
    pub(super) remote: &'a Remote,
    pub(super) session: &'a Session,
    pub(super) boot: BootId,
    base: &'a [u8],
}

impl At<'_> {
    /// The gate's path of a path in the session.
    pub(super) fn full(&self, path: &TreePath) -> Vec<u8> {
        let mut full = self.base.to_vec();
        for name in self.session.root.names().chain(path.names()) {
            if !full.is_empty() {
                full.push(b'/');
            }
            full.extend_from_slice(name);
        }
        full
    }

    /// A path and the object that it must lead to, as a message.
    pub(super) fn named(&self, path: &TreePath, object: Option<FileId>) -> proto::Path {
        path_message(self.full(path), object)
    }

    pub(super) fn stat(&self, path: &TreePath, object: Option<FileId>) -> Result<Stat, Failure> {
        let path = self.named(path, object);
        let found = self.remote.ask(|mut client| async move { client.get_attributes(path).await })?;
        Ok(stat_of(&found))
    }

    /// Checks that unsynced data is still there.
    ///
    /// # Errors
    /// The gate has restarted: the mount sends the data again once it has connected again.
    pub(super) fn check(&self, verifier: u64) -> Result<(), Failure> {
        if BootId(verifier) == self.boot { Ok(()) } else { Err(Failure::Lost) }
    }

    fn serve(&self, request: &Request, replies: &mut dyn Replies) -> Result<(), Failure> {
        let reply = match request {
            Request::Get(request) => return self.get(request, replies),
            Request::Lock(request) => Reply::Lock(self.lock(request, replies)?),
            Request::Put(request) => Reply::Put(self.put(request)?),
            Request::Remove(request) => Reply::Remove(self.remove(request)?),
            Request::Rename(request) => Reply::Rename(self.rename(request)?),
            Request::Link(request) => Reply::Link(self.link(request)?),
            Request::Statfs(request) => Reply::Statfs(self.statfs(request)?),
            Request::Commit(request) => Reply::Commit(self.commit(request)?),
            Request::Seek(request) => {
                let stat = self.stat(&request.target.path, request.target.id)?;
                Reply::Seek(request.without_holes(stat.size)?)
            }
            Request::Find(_) | Request::Xattr(_) | Request::Allocate(_) | Request::Copy(_) => {
                return Err(Errno::NotSupported.into());
            }
            // The server answers these itself.
            Request::Version(_)
            | Request::Attach(_)
            | Request::Flush(_)
            | Request::Ping(_)
            | Request::Recalled(_)
            | Request::Number(_) => return Err(Errno::Protocol.into()),
        };
        Ok(replies.send(reply)?)
    }
}

impl GateTree {
    pub(super) fn new(remote: Remote, closer: Closer, base: Vec<u8>, boot: BootId) -> GateTree {
        let (is_lost, sessions) = (AtomicBool::new(false), Mutex::default());
        GateTree { remote, closer, is_lost, base, boot, sessions }
    }

    /// Whether the gate was lost.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }

    fn at<'a>(&'a self, session: &'a Session) -> At<'a> {
        At { remote: &self.remote, session, boot: self.boot, base: &self.base }
    }

    fn lose(&self) {
        self.is_lost.store(true, Ordering::Relaxed);
        self.closer.close();
    }
}

fn refuse(replies: &mut dyn Replies, errno: Errno) {
    // Nobody may listen any more.
    let _gone = replies.send(Reply::Error(errno.into()));
}

impl Tree for GateTree {
    fn attach(&self, session: SessionKey, path: &TreePath) -> Result<Attached, Errno> {
        let opened =
            Arc::new(Session { root: path.clone(), listings: Mutex::default(), locks: Mutex::default() });
        let root = match self.at(&opened).stat(&TreePath::root(), None) {
            Ok(root) => root,
            Err(Failure::Errno(errno)) => return Err(errno),
            Err(Failure::Stopped | Failure::Lost) => {
                self.lose();
                return Err(Errno::HostDown);
            }
        };
        if root.kind != Kind::Directory {
            return Err(Errno::NotDirectory);
        }
        lock(&self.sessions).insert(session, opened);
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        Ok(Attached { root, uid, gid, acts_for_callers: false, read_only: false })
    }

    fn serve(&self, session: SessionKey, request: Request, replies: &mut dyn Replies) {
        let Some(found) = lock(&self.sessions).get(&session).cloned() else {
            return refuse(replies, Errno::Protocol);
        };
        match self.at(&found).serve(&request, replies) {
            Err(Failure::Errno(errno)) => refuse(replies, errno),
            Err(Failure::Lost) => self.lose(),
            Ok(()) | Err(Failure::Stopped) => {}
        }
    }

    fn end(&self, session: SessionKey) {
        let ended = lock(&self.sessions).remove(&session);
        drop(ended);
    }
}
