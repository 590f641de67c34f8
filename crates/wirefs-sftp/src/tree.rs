//! The tree: sessions with their open files, and each Op request as requests of SFTP.

mod copy;
mod find;
mod get;
mod listing;
mod locate;
mod names;
mod order;
mod put;
mod reconnect;
mod settle;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wirefs_op::message::version::BootId;
use wirefs_op::{DirEntry, Errno, Kind, Reply, Request, Stat, TreePath};
use wirefs_server::{Attached, LockTable, OpenFiles, Replies, SessionKey, Stopped, Tree};

use crate::dial::SftpDial;
use crate::identity::Identities;
use crate::message::Status;
use crate::remote::{Handle, Remote, SftpError};
use crate::wire::Fault;
use order::ChangeOrder;
use reconnect::{Connection, WatchedReplies};

/// A directory of an SFTP server.
pub struct SftpTree {
    dial: Box<dyn SftpDial>,
    connection: Mutex<Connection>,
    /// The absolute path of the root, without a slash at its end.
    base: Vec<u8>,
    owner: (u32, u32),
    ids: Identities,
    locks: LockTable,
    order: ChangeOrder,
    sessions: Mutex<BTreeMap<SessionKey, Arc<Client>>>,
    boot: BootId,
}

/// A session: the root of its paths, its open files, and unfinished listings.
struct Client {
    root: TreePath,
    files: OpenFiles<OpenFile>,
    listings: Mutex<BTreeMap<u64, Arc<Vec<DirEntry>>>>,
}

/// A file that is open at the server.
struct OpenFile {
    handle: Handle,
    ino: u64,
    reads: bool,
    writes: bool,
}

/// Why a request has no reply, or which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    Errno(Errno),
    Stopped,
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

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        match fault {
            Fault::Lost => Failure::Lost,
            Fault::Refused(status) => Failure::Errno(errno_of(status)),
        }
    }
}

fn errno_of(status: Status) -> Errno {
    match status {
        Status::NoSuchFile => Errno::NotFound,
        Status::Denied => Errno::AccessDenied,
        Status::BadMessage => Errno::Invalid,
        Status::Unsupported => Errno::NotSupported,
        Status::Ok | Status::End | Status::Failure => Errno::Io,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for SftpTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SftpTree").field("host", &self.dial.host()).finish_non_exhaustive()
    }
}

impl SftpTree {
    /// Connects to the server and finds the directory `path`: absolute, or relative to the login's home directory.
    /// `boot` is the boot id of commits.
    ///
    /// # Errors
    /// The host is not reached, does not speak SFTP, or does not have the directory.
    pub fn open(dial: Box<dyn SftpDial>, path: &[u8], boot: BootId) -> Result<SftpTree, SftpError> {
        let remote = Remote::connect(&*dial, true)?;
        let displayed = || String::from_utf8_lossy(if path.is_empty() { b"." } else { path }).into_owned();
        let failed = |failure| match failure {
            Failure::Errno(errno) => SftpError::Directory { host: dial.host(), path: displayed(), errno },
            Failure::Stopped | Failure::Lost => SftpError::Lost { host: dial.host() },
        };
        let (base, owner) = find_base(&remote, path).map_err(failed)?;
        let connection = Mutex::new(Connection::new(remote));
        Ok(SftpTree {
            dial,
            connection,
            base,
            owner,
            ids: Identities::default(),
            locks: LockTable::default(),
            order: ChangeOrder::default(),
            sessions: Mutex::default(),
            boot,
        })
    }

    fn serve_once(
        &self,
        session: SessionKey,
        request: &Request,
        replies: &mut WatchedReplies<'_>,
    ) -> Result<(), Failure> {
        let client = lock(&self.sessions).get(&session).cloned().ok_or(Errno::Protocol)?;
        let remote = self.remote()?;
        let at = At { tree: self, client: &client, remote: &remote };
        let reply = match request {
            Request::Get(request) => return at.get(request, replies),
            Request::Find(request) => return at.find(request, replies),
            Request::Lock(request) => {
                let stat = || at.stat(&request.target).map_err(|failure| failure.errno());
                self.locks.answer(session, request, &stat, replies);
                return Ok(());
            }
            Request::Put(request) => Reply::Put(at.put(request, replies)?),
            Request::Remove(request) => Reply::Remove(at.remove(request)?),
            Request::Rename(request) => Reply::Rename(at.rename(request)?),
            Request::Link(request) => Reply::Link(at.link(request)?),
            Request::Copy(request) => Reply::Copy(at.copy(request)?),
            Request::Statfs(request) => Reply::Statfs(at.statfs(request)?),
            Request::Commit(request) => Reply::Commit(at.commit(request)?),
            Request::Seek(request) => Reply::Seek(request.without_holes(at.stat(&request.target)?.size)?),
            Request::Xattr(_) | Request::Allocate(_) => return Err(Errno::NotSupported.into()),
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

impl Failure {
    fn errno(self) -> Errno {
        match self {
            Failure::Errno(errno) => errno,
            Failure::Stopped => Errno::Interrupted,
            Failure::Lost => Errno::Io,
        }
    }
}

/// Returns the absolute path of a directory, without a slash at its end, and the user and group of the login: those of
/// its home directory, since SFTP names none.
fn find_base(remote: &Remote, path: &[u8]) -> Result<(Vec<u8>, (u32, u32)), Failure> {
    let home = remote.lstat(b".")?;
    let base = remote.realpath(if path.is_empty() { b"." } else { path })?;
    let owner = home.attributes().ok().and_then(|home| home.owner).unwrap_or_default();
    // OpenSSH names a path whose last name does not exist.
    if remote.lstat(&base)?.attributes()?.kind() != Kind::Directory {
        return Err(Errno::NotDirectory.into());
    }
    let end = base.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    Ok((base.get(..end).unwrap_or_default().to_vec(), owner))
}

/// A request's surroundings: its session, and the server as it is reached now.
struct At<'a> {
    tree: &'a SftpTree,
    client: &'a Client,
    remote: &'a Arc<Remote>,
}

impl Tree for SftpTree {
    fn attach(&self, session: SessionKey, path: &TreePath) -> Result<Attached, Errno> {
        let remote = self.remote().map_err(Failure::errno)?;
        let client = Client {
            root: path.clone(),
            files: OpenFiles::new(remote.handles_max),
            listings: Mutex::default(),
        };
        let at = At { tree: self, client: &client, remote: &remote };
        let root: Stat = at.stat_at(&TreePath::root()).map_err(Failure::errno)?;
        if root.kind != Kind::Directory {
            return Err(Errno::NotDirectory);
        }
        self.locks.begin(session);
        lock(&self.sessions).insert(session, Arc::new(client));
        let (uid, gid) = self.owner;
        Ok(Attached { root, uid, gid, acts_for_callers: false, read_only: false })
    }

    fn serve(&self, session: SessionKey, request: Request, replies: &mut dyn Replies) {
        self.serve_until_reached(session, &request, replies);
    }

    fn end(&self, session: SessionKey) {
        self.locks.end(session);
        let ended = lock(&self.sessions).remove(&session);
        drop(ended);
    }
}
