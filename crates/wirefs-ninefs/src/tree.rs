//! The tree: sessions with their open files, and each Op request as requests of 9P.

mod get;
mod listing;
mod lock;
mod names;
mod open_files;
mod put;
mod settle;
mod xattr;

use crate::remote::Remote;
use crate::source::NineSource;
use open_files::OpenFile;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, Kind, Reply, Request, TreePath};
use wirefs_server::{Attached, OpenFiles, Replies, SessionKey, Stopped, Tree};

/// A 9P server's tree.
pub struct NineTree {
    source: NineSource,
    remote: Mutex<Arc<Remote>>,
    sessions: Mutex<BTreeMap<SessionKey, Arc<NineClient>>>,
    boot: BootId,
}

/// One session of the tree: where its paths begin, and its open files.
struct NineClient {
    root: TreePath,
    files: OpenFiles<OpenFile>,
}

/// Why a request has no reply, or which.
enum Failure {
    Errno(Errno),
    Stopped,
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for NineTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NineTree").field("source", &self.source).finish_non_exhaustive()
    }
}

impl NineTree {
    /// Connects to the server and attaches. `boot` names the run of which a commit tells.
    ///
    /// # Errors
    /// `EHOSTDOWN`: the server is not reached. `EPROTO`: it does not speak 9P. Or its refusal.
    pub fn open(source: NineSource, boot: BootId) -> Result<NineTree, Errno> {
        let remote = Mutex::new(Remote::attach(&source)?);
        Ok(NineTree { source, remote, sessions: Mutex::default(), boot })
    }

    /// The server; dials it again if its connection is lost.
    fn remote(&self) -> Result<Arc<Remote>, Errno> {
        let mut remote = lock(&self.remote);
        if remote.is_lost() {
            *remote = Remote::attach(&self.source)?;
        }
        Ok(Arc::clone(&remote))
    }

    fn serve_request(
        &self,
        session: SessionKey,
        request: Request,
        replies: &mut dyn Replies,
    ) -> Result<(), Failure> {
        let client = lock(&self.sessions).get(&session).cloned().ok_or(Errno::Protocol)?;
        let remote = self.remote()?;
        let at = At { client: &client, remote: &remote, boot: self.boot };
        let reply = match request {
            Request::Get(request) => return at.get(&request, replies),
            Request::Lock(request) => Reply::Lock(at.lock(&request, replies)?),
            Request::Put(request) => Reply::Put(at.put(&request)?),
            Request::Remove(request) => Reply::Remove(at.remove(&request)?),
            Request::Rename(request) => Reply::Rename(at.rename(&request)?),
            Request::Link(request) => Reply::Link(at.link(&request)?),
            Request::Xattr(request) => Reply::Xattr(at.xattr(&request)?),
            Request::Statfs(request) => Reply::Statfs(at.statfs(&request)?),
            Request::Commit(request) => Reply::Commit(at.commit(&request)?),
            Request::Seek(request) => Reply::Seek(at.seek(&request)?),
            // A walk of a subtree would cost two round trips a file, and read ahead what nobody asked for.
            Request::Find(_) | Request::Allocate(_) | Request::Copy(_) => {
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

/// A request's surroundings: its session, and the server as it is reached now.
struct At<'a> {
    client: &'a NineClient,
    remote: &'a Arc<Remote>,
    boot: BootId,
}

impl Tree for NineTree {
    fn attach(&self, session: SessionKey, path: &TreePath) -> Result<Attached, Errno> {
        let remote = self.remote()?;
        let (own, _) = remote.walk(path.names())?;
        let root = remote.stat(own.fid)?;
        if root.kind != Kind::Directory {
            return Err(Errno::NotDirectory);
        }
        let client = Arc::new(NineClient { root: path.clone(), files: OpenFiles::default() });
        lock(&self.sessions).insert(session, client);
        Ok(Attached { root, uid: remote.uid, gid: remote.gid, acts_for_callers: false, read_only: false })
    }

    fn serve(&self, session: SessionKey, request: Request, replies: &mut dyn Replies) {
        match self.serve_request(session, request, replies) {
            // Nobody may listen any more.
            Err(Failure::Errno(errno)) => drop(replies.send(Reply::Error(errno.into()))),
            Ok(()) | Err(Failure::Stopped) => {}
        }
    }

    fn end(&self, session: SessionKey) {
        let ended = lock(&self.sessions).remove(&session);
        drop(ended);
    }
}
