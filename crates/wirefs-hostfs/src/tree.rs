//! The export: opens the directory, knows the sessions, hands each request to its operation.

use crate::attributes::{self, Device};
use crate::changes::Changes;
use crate::failure::{Failure, errno};
use crate::find::Crew;
use crate::identity::can_act_for_callers;
use crate::locks::LockTable;
use crate::open_files::Budget;
use crate::promise::{Notice, Promises};
use crate::resolve::beneath;
use crate::session::{Export, Session};
use bytes::Bytes;
use rustix::fd::AsFd;
use rustix::fs::{Mode, OFlags};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use wirefs_op::message::attach::Watch;
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, FileId, Kind, Reply, Request, TreePath};
use wirefs_server::{Attached, ExternalChange, ObserveChange, Replies, SessionKey, Tree};

/// How a directory is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostOptions {
    /// Refuses changes with `EROFS`.
    pub read_only: bool,
    /// Shows what is mounted below the directory too; else such places answer `EXDEV`.
    pub cross_mounts: bool,
    /// This run of the server, told with each commit.
    pub boot: BootId,
    /// Which changes are noticed that are not made through this server, so that clients may be promised to hear of them.
    pub notice: Notice,
}

impl Default for HostOptions {
    /// Writable, with what is mounted below.
    fn default() -> HostOptions {
        HostOptions { read_only: false, cross_mounts: true, boot: BootId::default(), notice: Notice::Nothing }
    }
}

/// Why a directory cannot be exported, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Nothing is there.
    #[error("{} does not exist; make it first (mkdir -p) or correct the path", .0.display())]
    Missing(PathBuf),
    /// Something else is there.
    #[error("{} is not a directory; export the directory that it is in", .0.display())]
    NotDirectory(PathBuf),
    /// It may not be entered or read.
    #[error(
        "no permission to read {}; export it as a user who may, or allow it (chmod u+rx, or the group's rights)",
        .0.display()
    )]
    Denied(PathBuf),
    /// The system's table of open files is mounted at `/proc`.
    #[error(
        "/proc is not mounted here, and open files are reached through it; mount it (mount -t proc proc /proc)"
    )]
    WithoutProc,
    /// Too old a kernel.
    #[error("this kernel lacks openat2, without which paths cannot be kept inside {}; Linux 5.6 or newer is needed", .0.display())]
    OldKernel(PathBuf),
    /// Anything else.
    #[error("cannot open {}: {errno}; check the disk and the mount that it is on", dir.display())]
    Other {
        /// The directory.
        dir: PathBuf,
        /// What the system said.
        errno: Errno,
    },
}

impl OpenError {
    fn new(dir: &Path, error: rustix::io::Errno) -> OpenError {
        let dir = dir.to_path_buf();
        match error {
            rustix::io::Errno::NOENT => OpenError::Missing(dir),
            rustix::io::Errno::NOTDIR => OpenError::NotDirectory(dir),
            rustix::io::Errno::ACCESS | rustix::io::Errno::PERM => OpenError::Denied(dir),
            rustix::io::Errno::NOSYS => OpenError::OldKernel(dir),
            error => OpenError::Other { dir, errno: errno(error) },
        }
    }
}

/// A host directory as a tree.
#[derive(Debug)]
pub struct HostTree {
    pub(crate) export: Arc<Export>,
    sessions: RwLock<HashMap<SessionKey, Arc<Session>>>,
}

impl HostTree {
    /// Opens `dir` for export.
    ///
    /// # Errors
    /// It is not there, is no directory, may not be read, or the system lacks something; each says the next step.
    pub fn open(dir: &Path, options: HostOptions) -> Result<HostTree, OpenError> {
        let failed = |error| OpenError::new(dir, error);
        let how = OFlags::DIRECTORY | OFlags::CLOEXEC;
        // Opened for reading first, to learn here and not at the first listing that it may not be read.
        let readable = rustix::fs::open(dir, how | OFlags::RDONLY, Mode::empty()).map_err(failed)?;
        let root = rustix::fs::openat(&readable, c".", how | OFlags::PATH, Mode::empty()).map_err(failed)?;
        let no_flags = rustix::fs::ResolveFlags::empty();
        rustix::fs::openat2(&root, c".", how | OFlags::PATH, Mode::empty(), no_flags).map_err(failed)?;
        let proc_entry = attributes::proc_path(root.as_fd());
        rustix::fs::readlink(proc_entry, Vec::new()).map_err(|_| OpenError::WithoutProc)?;
        let statx = attributes::statx(root.as_fd(), c"").map_err(failed)?;
        let budget = Budget::of_process();
        let export = Export {
            root,
            home: Device::of(&statx),
            options,
            acts_for_callers: can_act_for_callers(),
            locks: LockTable::new(Arc::clone(&budget)),
            budget,
            crew: Crew::default(),
            changes: Changes::default(),
            promises: Promises::new(options.notice),
        };
        Ok(HostTree { export: Arc::new(export), sessions: RwLock::default() })
    }

    pub(crate) fn session(&self, key: SessionKey) -> Option<Arc<Session>> {
        let sessions = self.sessions.read().unwrap_or_else(PoisonError::into_inner);
        sessions.get(&key).cloned()
    }
}

impl Tree for HostTree {
    fn attach(&self, session: SessionKey, path: &TreePath) -> Result<Attached, Errno> {
        let export = &self.export;
        export.promises.begin();
        let root = if path.is_root() {
            export.root.try_clone().map_err(|_| Errno::TooManyOpen)?
        } else {
            beneath(export.root.as_fd(), path, export.options.cross_mounts)?
        };
        let id = attributes::file_id(&attributes::statx(root.as_fd(), c"").map_err(errno)?, export.home);
        let is_noticed = export.promises.notices(root.as_fd(), id);
        let mut stat = attributes::stat_fd(&root, export.home).map_err(errno)?;
        if stat.kind != Kind::Directory {
            return Err(Errno::NotDirectory);
        }
        let new = Arc::new(Session::new(session, Arc::clone(export), root, stat.id));
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        let replaced = match sessions.get(&session) {
            // Attaching again to the same directory keeps what is open there.
            Some(present) if present.root_id == stat.id => None,
            Some(_) | None => sessions.insert(session, new),
        };
        drop(sessions);
        if let Some(replaced) = replaced {
            replaced.end();
        }
        // By now it is the root of a session, whose watch is not let go.
        if is_noticed && export.promises.births.are_known() {
            export.promises.watches.promise(|| stat.leased = true);
        }
        Ok(Attached {
            root: stat,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            acts_for_callers: export.acts_for_callers,
            read_only: export.options.read_only,
        })
    }

    fn serve(&self, session: SessionKey, request: Request, replies: &mut dyn Replies) {
        self.export.promises.begin();
        let outcome = match self.session(session) {
            Some(session) => session.serve(request, replies),
            // Not attached, so there is no tree that the paths could be in.
            None => Err(Failure::Errno(Errno::Protocol)),
        };
        match outcome {
            // Whoever does not listen any more need not be told.
            Err(Failure::Errno(errno)) => drop(replies.send(Reply::Error(errno.into()))),
            Ok(()) | Err(Failure::Stopped | Failure::Parked) => {}
        }
    }

    fn end(&self, session: SessionKey) {
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        let ended = sessions.remove(&session);
        drop(sessions);
        if let Some(ended) = ended {
            ended.end();
        }
    }

    fn observe(&self, tell: ObserveChange) {
        self.export.promises.observe(self.export.root.as_fd(), tell);
    }

    fn verify(&self, id: FileId, name: Option<&[u8]>, tell: &mut dyn FnMut(ExternalChange)) {
        let version = self.export.promises.version(id);
        tell(ExternalChange::Changed { id, name: name.map(Bytes::copy_from_slice), version });
    }

    fn trim_watches(&self, known: &dyn Fn(&[FileId]) -> Vec<bool>) -> Option<String> {
        self.export.promises.tend(&|ids| {
            // Roots are promised by who attaches to them, not here. Nobody promises anything while this is asked.
            let sessions = self.sessions.read().unwrap_or_else(PoisonError::into_inner);
            let roots: HashSet<FileId> = sessions.values().map(|session| session.root_id).collect();
            drop(sessions);
            let is_root = ids.iter().map(|id| roots.contains(id));
            known(ids).into_iter().zip(is_root).map(|(is_known, is_root)| is_known || is_root).collect()
        })
    }

    fn leases(&self) -> Option<Watch> {
        self.export.promises.watch_kind()
    }
}

impl Session {
    fn serve(&self, request: Request, replies: &mut dyn Replies) -> Result<(), Failure> {
        let reply = match request {
            Request::Get(request) => return self.get(&request, replies),
            Request::Find(request) => return self.find(&request, replies),
            Request::Lock(request) => return self.lock(&request, replies),
            Request::Put(request) => Reply::Put(self.put(&request, replies)?),
            Request::Remove(request) => Reply::Remove(self.remove(&request, replies)?),
            Request::Rename(request) => Reply::Rename(self.rename(&request, replies)?),
            Request::Link(request) => Reply::Link(self.link(&request, replies)?),
            Request::Xattr(request) => Reply::Xattr(self.xattr(&request, replies)?),
            Request::Statfs(request) => Reply::Statfs(self.statfs(&request)?),
            Request::Allocate(request) => Reply::Allocate(self.allocate(&request, replies)?),
            Request::Copy(request) => Reply::Copy(self.copy(&request, replies)?),
            Request::Seek(request) => Reply::Seek(self.seek(&request)?),
            Request::Commit(request) => Reply::Commit(self.commit(&request, replies)?),
            // The server answers these itself.
            Request::Version(_)
            | Request::Attach(_)
            | Request::Flush(_)
            | Request::Ping(_)
            | Request::Recalled(_)
            | Request::Number(_) => {
                return Err(Failure::Errno(Errno::Protocol));
            }
        };
        Ok(replies.send(reply)?)
    }
}
