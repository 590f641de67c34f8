//! The model as a tree that serves Op.

mod file;
mod find;
mod get;
mod name;
mod preconditions;
mod put;
mod touch;

use crate::fs::{CrashDisk, ModelFs, ModelIno, ROOT};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use wirefs_op::limits::FDS_MAX;
use wirefs_op::message::attach::Watch;
use wirefs_op::message::target::{Fd, NOFD, Place, Target};
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, FileId, Kind, Reply, Request, Stat, Timestamp, TreePath};
use wirefs_server::{Attached, ExternalChange, ObserveChange, Parked, Replies, SessionKey, Touched, Tree};

/// The reference tree: in memory, with one lock, without permission checks, without locks for clients.
pub struct ModelTree {
    state: Mutex<ModelState>,
    /// Receives changes that no request caused.
    observer: Mutex<Option<ObserveChange>>,
}

impl std::fmt::Debug for ModelTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelTree").field("state", &self.state).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct ModelState {
    fs: ModelFs,
    sessions: BTreeMap<SessionKey, ModelSession>,
    boot: BootId,
    /// The durable states, if power cuts are simulated.
    disk: Option<CrashDisk>,
}

/// The state of one client.
#[derive(Debug)]
struct ModelSession {
    root: ModelIno,
    files: BTreeMap<Fd, HeldFile>,
}

/// An open file.
#[derive(Debug)]
struct HeldFile {
    ino: ModelIno,
    /// The name to remove when the file is closed.
    remove: Option<(ModelIno, Vec<u8>)>,
}

/// The target of a request.
#[derive(Clone, Copy, Debug)]
struct ResolvedObject {
    ino: ModelIno,
    kind: Kind,
    /// The fd, if it is open already.
    fd: Option<Fd>,
}

impl ModelTree {
    /// Returns an empty tree with the boot id `boot`.
    pub fn new(boot: BootId) -> ModelTree {
        ModelTree::of(ModelFs::new(), boot, None)
    }

    fn of(fs: ModelFs, boot: BootId, disk: Option<CrashDisk>) -> ModelTree {
        let state = ModelState { fs, sessions: BTreeMap::new(), boot, disk };
        ModelTree { state: Mutex::new(state), observer: Mutex::new(None) }
    }

    /// Starts recording the durable states, for [`after_power_cut`](Self::after_power_cut).
    ///
    /// # Cost
    /// A copy of the tree for each change since the last commit of everything.
    pub fn on_a_disk(self) -> ModelTree {
        let mut state = self.state();
        state.disk = Some(CrashDisk::new(&state.fs));
        drop(state);
        self
    }

    /// Sets the time until the next call. Change times are strictly increasing. The first call also sets the times of
    /// all existing inodes.
    pub fn set_time(&self, now: Timestamp) {
        self.state().fs.set_time(now);
    }

    /// Returns the tree after a power cut and a restart: its names are those of some earlier state, and each file is in
    /// some earlier state. `choose` picks a number below its argument; 0 always picks the durable state.
    pub fn after_power_cut(&self, boot: BootId, choose: &mut dyn FnMut(u64) -> u64) -> ModelTree {
        let state = self.state();
        let fs = state.disk.as_ref().map_or_else(|| state.fs.clone(), |disk| disk.after_power_cut(choose));
        let disk = CrashDisk::new(&fs);
        ModelTree::of(fs, boot, Some(disk))
    }

    /// Returns an equal tree without sessions.
    pub fn copy(&self) -> ModelTree {
        let state = self.state();
        ModelTree::of(state.fs.clone(), state.boot, None)
    }

    /// Returns whether `answer` is an allowed result of a seek in a tree with the same contents.
    pub(crate) fn is_allowed_seek_result(
        &self,
        session: SessionKey,
        target: &Target,
        offset: u64,
        hole: bool,
        answer: Result<u64, Errno>,
    ) -> bool {
        let state = self.state();
        let object = state.locate(session, target);
        object.is_ok_and(|object| state.fs.is_allowed_seek_result(object.ino, offset, hole, answer))
    }

    fn state(&self) -> MutexGuard<'_, ModelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tree for ModelTree {
    fn attach(&self, session: SessionKey, path: &TreePath) -> Result<Attached, Errno> {
        let mut state = self.state();
        let root = state.walk(ROOT, path)?;
        // Only requests change this tree, so the grant is always valid.
        let stat = Stat { leased: true, ..state.fs.stat(root)? };
        if stat.kind != Kind::Directory {
            return Err(Errno::NotDirectory);
        }
        // A resumed session keeps its open files.
        state.sessions.entry(session).or_insert_with(|| ModelSession { root, files: BTreeMap::new() });
        Ok(Attached { root: stat, uid: 0, gid: 0, acts_for_callers: true, read_only: false })
    }

    fn serve(&self, session: SessionKey, request: Request, replies: &mut dyn Replies) {
        // Collected first: sending may block, and the lock must not be held meanwhile.
        let outgoing = self.state().execute(session, &request, replies);
        for reply in outgoing.unwrap_or_default() {
            if replies.send(reply).is_err() {
                return;
            }
        }
    }

    fn end(&self, session: SessionKey) {
        let mut changed = Vec::new();
        let mut state = self.state();
        let ended = state.sessions.remove(&session);
        for held in ended.into_iter().flat_map(|session| session.files.into_values()) {
            if let Some((dir, name)) = &held.remove {
                changed.extend(state.removal_touches(*dir, name, held.ino));
            }
            state.close_held(held);
        }
        drop(state);
        let mut observer = self.observer.lock().unwrap_or_else(PoisonError::into_inner);
        for Touched { id, name, .. } in changed {
            observer
                .iter_mut()
                .for_each(|notify| notify(ExternalChange::Changed { id, name: name.clone(), version: None }));
        }
    }

    fn observe(&self, observer: ObserveChange) {
        *self.observer.lock().unwrap_or_else(PoisonError::into_inner) = Some(observer);
    }

    fn leases(&self) -> Option<Watch> {
        Some(Watch::Filesystem)
    }
}

impl ModelState {
    /// Executes a request and returns its replies; none while the request is parked.
    fn execute(
        &mut self,
        session: SessionKey,
        request: &Request,
        replies: &mut dyn Replies,
    ) -> Result<Vec<Reply>, Parked> {
        replies.touch(&self.touches(session, request))?;
        replies.record_prior_state(&mut || self.state_before(session, request));
        let outcome = match request {
            Request::Get(get) => self.get(session, get, replies),
            Request::Find(find) => self.find(session, find, replies),
            other => self.single_reply(session, other).map(|reply| vec![reply]),
        };
        if let Some(disk) = self.disk.as_mut().filter(|_| request.is_change()) {
            disk.changed(&self.fs);
        }
        let mut outgoing = outcome.unwrap_or_else(|errno| vec![Reply::Error(errno.into())]);
        replies.grant(&mut outgoing.iter_mut().flat_map(stats));
        Ok(outgoing)
    }

    fn single_reply(&mut self, session: SessionKey, request: &Request) -> Result<Reply, Errno> {
        Ok(match request {
            Request::Put(put) => Reply::Put(self.put(session, put)?),
            Request::Remove(remove) => Reply::Remove(self.remove(session, remove)?),
            Request::Rename(rename) => Reply::Rename(self.rename(session, rename)?),
            Request::Link(link) => Reply::Link(self.link(session, link)?),
            Request::Xattr(xattr) => Reply::Xattr(self.xattr(session, xattr)?),
            Request::Statfs(statfs) => Reply::Statfs(self.statfs(session, statfs)?),
            Request::Allocate(allocate) => Reply::Allocate(self.allocate(session, allocate)?),
            Request::Copy(copy) => Reply::Copy(self.copy(session, copy)?),
            Request::Seek(seek) => Reply::Seek(self.seek(session, seek)?),
            Request::Commit(commit) => Reply::Commit(self.commit(session, commit)?),
            Request::Lock(_) => return Err(Errno::NotSupported),
            Request::Version(_)
            | Request::Attach(_)
            | Request::Flush(_)
            | Request::Ping(_)
            | Request::Get(_)
            | Request::Find(_)
            | Request::Recalled(_)
            | Request::Number(_) => {
                return Err(Errno::Protocol);
            }
        })
    }

    fn session(&self, session: SessionKey) -> Result<&ModelSession, Errno> {
        self.sessions.get(&session).ok_or(Errno::Protocol)
    }

    fn files(&mut self, session: SessionKey) -> Result<&mut BTreeMap<Fd, HeldFile>, Errno> {
        self.sessions.get_mut(&session).map(|session| &mut session.files).ok_or(Errno::Protocol)
    }

    fn walk(&self, root: ModelIno, path: &TreePath) -> Result<ModelIno, Errno> {
        path.names().try_fold(root, |dir, name| self.fs.lookup(dir, name))
    }

    /// Returns the target of a request: by its fd if that is the expected object, otherwise by its path, where the
    /// object must be.
    fn locate(&self, session: SessionKey, target: &Target) -> Result<ResolvedObject, Errno> {
        let view = self.session(session)?;
        let is_held = |ino: ModelIno| view.files.get(&target.fd).is_some_and(|held| held.ino == ino);
        let held = view.files.get(&target.fd).map(|held| held.ino);
        let ino = match (target.id, held) {
            (Some(id), Some(ino)) if ino.id() == id => ino,
            (expected, _) => self.check_id(self.walk(view.root, &target.path), expected)?,
        };
        let kind = self.fs.inode(ino)?.kind();
        Ok(ResolvedObject { ino, kind, fd: is_held(ino).then_some(target.fd) })
    }

    /// Returns the inode if it has the expected id.
    fn check_id(&self, found: Result<ModelIno, Errno>, expected: Option<FileId>) -> Result<ModelIno, Errno> {
        match (found, expected) {
            (Ok(ino), Some(id)) if ino.id() != id => Err(Errno::Stale),
            (Err(Errno::NotFound | Errno::NotDirectory), Some(_)) => Err(Errno::Stale),
            (found, _) => found,
        }
    }

    /// Returns the directory at `path`.
    fn directory(
        &self,
        session: SessionKey,
        path: &TreePath,
        expected: Option<FileId>,
    ) -> Result<ModelIno, Errno> {
        let found = self.walk(self.session(session)?.root, path);
        let is_directory = |ino: &ModelIno| self.fs.inode(*ino).is_ok_and(|inode| inode.is_directory());
        self.check_id(
            found.and_then(|ino| Some(ino).filter(is_directory).ok_or(Errno::NotDirectory)),
            expected,
        )
    }

    /// Returns the directory of `place` and the name in it; the root is not an entry.
    fn entry<'a>(&self, session: SessionKey, place: &'a Place) -> Result<(ModelIno, &'a [u8]), Errno> {
        let (dir, name) = place.path.split_last().ok_or(Errno::Busy)?;
        Ok((self.directory(session, &dir, place.dir)?, name))
    }

    fn stat(&self, ino: ModelIno) -> Option<Stat> {
        self.fs.stat(ino).ok()
    }

    /// Keeps an object open; returns its existing or a new fd.
    fn keep(&mut self, session: SessionKey, object: ResolvedObject) -> Result<Fd, Errno> {
        if let Some(fd) = object.fd {
            return Ok(fd);
        }
        let files = self.files(session)?;
        let free = (0..FDS_MAX as u16).map(Fd).find(|fd| !files.contains_key(fd));
        let Some(fd) = free else { return Ok(NOFD) };
        files.insert(fd, HeldFile { ino: object.ino, remove: None });
        self.fs.hold(object.ino);
        Ok(fd)
    }

    /// Closes the object's fd.
    fn close(&mut self, session: SessionKey, object: ResolvedObject) -> Result<(), Errno> {
        let Some(fd) = object.fd else { return Ok(()) };
        if let Some(held) = self.files(session)?.remove(&fd) {
            self.close_held(held);
        }
        Ok(())
    }

    fn close_held(&mut self, held: HeldFile) {
        if let Some((dir, name)) = held.remove {
            self.remove_if_unchanged(dir, &name, held.ino);
        }
        self.fs.release(held.ino);
    }

    /// Removes a name if it still belongs to this inode.
    fn remove_if_unchanged(&mut self, dir: ModelIno, name: &[u8], ino: ModelIno) {
        if self.fs.lookup(dir, name) == Ok(ino) {
            // Unlink fails for a directory; its name then stays.
            let _ = self.fs.unlink(dir, name);
        }
    }
}

/// Returns the attributes in a reply, except those in listings.
fn stats(reply: &mut Reply) -> impl Iterator<Item = &mut Stat> {
    let stats = match reply {
        Reply::Get(get) => [get.stat.as_mut(), None, None],
        Reply::Put(put) => [put.stat.as_mut(), put.dir.as_mut(), None],
        Reply::Remove(remove) => [remove.dir.as_mut(), None, None],
        Reply::Rename(rename) => [rename.stat.as_mut(), rename.from_dir.as_mut(), rename.to_dir.as_mut()],
        Reply::Link(link) => [link.stat.as_mut(), link.dir.as_mut(), None],
        Reply::Xattr(xattr) => [xattr.stat.as_mut(), None, None],
        Reply::Allocate(allocate) => [allocate.stat.as_mut(), None, None],
        Reply::Copy(copy) => [copy.stat.as_mut(), None, None],
        Reply::Lock(lock) => [lock.stat.as_mut(), None, None],
        Reply::Statfs(_)
        | Reply::Seek(_)
        | Reply::Commit(_)
        | Reply::Error(_)
        | Reply::Version(_)
        | Reply::Attach(_)
        | Reply::Flush(_)
        | Reply::Ping(_)
        | Reply::Find(_)
        | Reply::Recall(_)
        | Reply::Alone(_)
        | Reply::Limited(_)
        | Reply::Times(_) => [None, None, None],
    };
    stats.into_iter().flatten()
}
