//! The export: opens the directory, keeps the sessions, and dispatches requests to the operations.

use crate::attributes::{self, Home};
use crate::changes::Changes;
use crate::clients::Clients;
use crate::detection::{ChangeDetection, DetectionMode};
use crate::failure::{Failure, errno};
use crate::find::HelperLimit;
use crate::identity::can_act_for_callers;
use crate::locks::LockTable;
use crate::open_files::Budget;
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
use wirefs_server::{Attached, ExternalChange, ObserveChange, PartyKey, Replies, SessionKey, Tree};

/// The options of an exported directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostOptions {
    /// Whether changes are refused with `EROFS`.
    pub read_only: bool,
    /// Whether file systems that are mounted below the directory are visible; if not, they answer `EXDEV`.
    pub cross_mounts: bool,
    /// Whether clients may set set-user-id and set-group-id bits and file capabilities on files. If not, the bits are
    /// left out, and a write to a file removes those that it has.
    pub allows_set_id: bool,
    /// Whether clients may create device files.
    pub allows_devices: bool,
    /// The boot id in each Rcommit and in each version.
    pub boot: BootId,
    /// How external changes are detected, so that clients can get leases.
    pub detection: DetectionMode,
}

impl Default for HostOptions {
    /// Writable, for clients that have fewer rights than this process.
    fn default() -> HostOptions {
        HostOptions {
            read_only: false,
            cross_mounts: false,
            allows_set_id: false,
            allows_devices: false,
            boot: BootId::default(),
            detection: DetectionMode::Nothing,
        }
    }
}

impl HostOptions {
    /// Returns the options for clients that have the rights of this process anyway.
    pub fn all_rights() -> HostOptions {
        HostOptions {
            cross_mounts: true,
            allows_set_id: true,
            allows_devices: true,
            ..HostOptions::default()
        }
    }
}

/// The reason why a directory cannot be exported, with the next step for the administrator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// The directory does not exist.
    #[error("{} does not exist; make it first (mkdir -p) or correct the path", .0.display())]
    Missing(PathBuf),
    /// The path is not a directory.
    #[error("{} is not a directory; export the directory that it is in", .0.display())]
    NotDirectory(PathBuf),
    /// The directory may not be searched or read.
    #[error(
        "no permission to read {}; export it as a user who may, or allow it (chmod u+rx, or the group's rights)",
        .0.display()
    )]
    Denied(PathBuf),
    /// `/proc`, which leads to open files, is not mounted.
    #[error(
        "/proc is not mounted here, and open files are reached through it; mount it (mount -t proc proc /proc)"
    )]
    WithoutProc,
    /// The kernel is too old.
    #[error("this kernel lacks openat2, without which paths cannot be kept inside {}; Linux 5.6 or newer is needed", .0.display())]
    OldKernel(PathBuf),
    /// Any other failure.
    #[error("cannot open {}: {errno}; check the disk and the mount that it is on", dir.display())]
    Other {
        /// The directory.
        dir: PathBuf,
        /// The error of the system.
        errno: Errno,
    },
}

impl ExportError {
    fn new(dir: &Path, error: rustix::io::Errno) -> ExportError {
        let dir = dir.to_path_buf();
        match error {
            rustix::io::Errno::NOENT => ExportError::Missing(dir),
            rustix::io::Errno::NOTDIR => ExportError::NotDirectory(dir),
            rustix::io::Errno::ACCESS | rustix::io::Errno::PERM => ExportError::Denied(dir),
            rustix::io::Errno::NOSYS => ExportError::OldKernel(dir),
            error => ExportError::Other { dir, errno: errno(error) },
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
    /// The directory does not exist, is not a directory, may not be read, or the system lacks a feature. Each
    /// message names the next step.
    pub fn open(dir: &Path, options: HostOptions) -> Result<HostTree, ExportError> {
        let failed = |error| ExportError::new(dir, error);
        let how = OFlags::DIRECTORY | OFlags::CLOEXEC;
        // Opened for reading, so that a missing permission is reported here and not by the first listing.
        let readable = rustix::fs::open(dir, how | OFlags::RDONLY, Mode::empty()).map_err(failed)?;
        let root = rustix::fs::openat(&readable, c".", how | OFlags::PATH, Mode::empty()).map_err(failed)?;
        let no_flags = rustix::fs::ResolveFlags::empty();
        rustix::fs::openat2(&root, c".", how | OFlags::PATH, Mode::empty(), no_flags).map_err(failed)?;
        let proc_entry = attributes::proc_path(root.as_fd());
        rustix::fs::readlink(proc_entry, Vec::new()).map_err(|_| ExportError::WithoutProc)?;
        let statx = attributes::statx(root.as_fd(), c"").map_err(failed)?;
        let export = Export {
            root,
            home: Home::new(&statx, options.boot),
            options,
            acts_for_callers: can_act_for_callers(),
            locks: LockTable::default(),
            clients: Clients::new(Budget::of_process()),
            helper_limit: HelperLimit::default(),
            changes: Changes::default(),
            detection: ChangeDetection::new(options.detection),
        };
        Ok(HostTree { export: Arc::new(export), sessions: RwLock::default() })
    }

    pub(crate) fn session(&self, key: SessionKey) -> Option<Arc<Session>> {
        let sessions = self.sessions.read().unwrap_or_else(PoisonError::into_inner);
        sessions.get(&key).cloned()
    }
}

impl Tree for HostTree {
    fn introduce(&self, session: SessionKey, party: &PartyKey) {
        self.export.clients.introduce(session, party);
    }

    fn attach(&self, session: SessionKey, path: &TreePath) -> Result<Attached, Errno> {
        let export = &self.export;
        export.detection.begin_request();
        let root = if path.is_root() {
            export.root.try_clone().map_err(|_| Errno::TooManyOpen)?
        } else {
            beneath(export.root.as_fd(), path, export.options.cross_mounts)?
        };
        let id = attributes::file_id(&attributes::statx(root.as_fd(), c"").map_err(errno)?, export.home);
        let is_covered = export.detection.ensure_watched(root.as_fd(), id);
        let mut stat = attributes::stat_fd(&root, export.home).map_err(errno)?;
        if stat.kind != Kind::Directory {
            return Err(Errno::NotDirectory);
        }
        let new = Arc::new(Session::new(
            session,
            Arc::clone(export),
            export.clients.budget(session),
            (root, stat.id),
        ));
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        let replaced = match sessions.get(&session) {
            // Attaching again to the same directory keeps the open files.
            Some(present) if present.root_id == stat.id => None,
            Some(_) | None => sessions.insert(session, new),
        };
        drop(sessions);
        if let Some(replaced) = replaced {
            replaced.end();
        }
        // The watch of a session's root is never released.
        if is_covered && export.detection.pending_creations.are_finished() {
            export.detection.generation.if_current(|| stat.leased = true);
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
        self.export.detection.begin_request();
        let outcome = match self.session(session) {
            Some(session) => session.serve(request, replies),
            // The session is not attached.
            None => Err(Failure::Errno(Errno::Protocol)),
        };
        match outcome {
            // If the send fails, no reply is wanted.
            Err(Failure::Errno(errno)) => drop(replies.send(Reply::Error(errno.into()))),
            Ok(()) | Err(Failure::Stopped | Failure::Parked) => {}
        }
    }

    fn end(&self, session: SessionKey) {
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        let ended = sessions.remove(&session);
        drop(sessions);
        self.export.clients.end(session);
        if let Some(ended) = ended {
            ended.end();
        }
    }

    fn observe(&self, observer: ObserveChange) {
        let export = &self.export;
        export.detection.observe(export.root.as_fd(), export.options.boot, observer);
    }

    fn verify(&self, id: FileId, name: Option<&[u8]>, report: &mut dyn FnMut(ExternalChange)) {
        let version = self.export.detection.version(id);
        report(ExternalChange::Changed { id, name: name.map(Bytes::copy_from_slice), version });
    }

    fn trim_watches(&self, leased: &dyn Fn(&[FileId]) -> Vec<bool>) -> Option<String> {
        self.export.detection.trim_watches(&|ids| {
            // The watch of a session's root stays, although its lease is not granted here. No lease is granted
            // while this closure runs.
            let sessions = self.sessions.read().unwrap_or_else(PoisonError::into_inner);
            let roots: HashSet<FileId> = sessions.values().map(|session| session.root_id).collect();
            drop(sessions);
            let is_root = ids.iter().map(|id| roots.contains(id));
            leased(ids).into_iter().zip(is_root).map(|(is_leased, is_root)| is_leased || is_root).collect()
        })
    }

    fn leases(&self) -> Option<Watch> {
        self.export.detection.watch_kind()
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
            // The server core answers these requests.
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
