//! The model as a tree that answers Op.

mod file;
mod find;
mod finds;
mod get;
mod name;
mod put;
mod touch;

use crate::fs::{Disk, Fs, Ino, ROOT};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use wirefs_op::limits::FDS_MAX;
use wirefs_op::message::attach::Watch;
use wirefs_op::message::target::{Fd, NOFD, Place, Target};
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, FileId, Kind, Reply, Request, Stat, Timestamp, TreePath};
use wirefs_server::{Attached, Outside, Parked, Replies, SessionKey, Tell, Touched, Tree};

/// The reference tree: all in memory, one lock around it, no permissions checked, no locks granted.
pub struct ModelTree {
    state: Mutex<State>,
    /// Who hears of what changes although no request asks for it.
    tell: Mutex<Option<Tell>>,
}

impl std::fmt::Debug for ModelTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelTree").field("state", &self.state).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct State {
    fs: Fs,
    sessions: BTreeMap<SessionKey, Session>,
    boot: BootId,
    /// Where power cuts are played.
    disk: Option<Disk>,
}

/// One client's view.
#[derive(Debug)]
struct Session {
    root: Ino,
    files: BTreeMap<Fd, Kept>,
}

/// A file kept open.
#[derive(Debug)]
struct Kept {
    ino: Ino,
    /// The name to remove when it is closed.
    remove: Option<(Ino, Vec<u8>)>,
}

/// The object that a request means.
#[derive(Clone, Copy, Debug)]
struct Object {
    ino: Ino,
    kind: Kind,
    /// Where it is kept open already.
    fd: Option<Fd>,
}

impl ModelTree {
    /// An empty tree. `boot` names this run of the server.
    pub fn new(boot: BootId) -> ModelTree {
        ModelTree::of(Fs::new(), boot, None)
    }

    fn of(fs: Fs, boot: BootId, disk: Option<Disk>) -> ModelTree {
        let state = State { fs, sessions: BTreeMap::new(), boot, disk };
        ModelTree { state: Mutex::new(state), tell: Mutex::new(None) }
    }

    /// The same tree, which remembers from now on what its disk has for certain, and what perhaps.
    ///
    /// # Cost
    /// A copy of all of it for each change up to the next commit of everything.
    pub fn on_a_disk(self) -> ModelTree {
        let mut state = self.state();
        state.disk = Some(Disk::new(&state.fs));
        drop(state);
        self
    }

    /// It is this time there from now on, until another one is set. Times of change never go down, and no two are equal; all that was there
    /// before the first was made then.
    pub fn set_time(&self, now: Timestamp) {
        self.state().fs.set_time(now);
    }

    /// The tree as it is found when its machine, which now lost power, is there again: names are those after some change, and each file
    /// is what it was after some change. `choose` picks a number below its argument; 0 always is what the disk has for certain.
    pub fn after_power_cut(&self, boot: BootId, choose: &mut dyn FnMut(u64) -> u64) -> ModelTree {
        let state = self.state();
        let fs = state.disk.as_ref().map_or_else(|| state.fs.clone(), |disk| disk.after_power_cut(choose));
        let disk = Disk::new(&fs);
        ModelTree::of(fs, boot, Some(disk))
    }

    /// Another tree that is the same now, without sessions.
    pub fn copy(&self) -> ModelTree {
        let state = self.state();
        ModelTree::of(state.fs.clone(), state.boot, None)
    }

    /// Whether a tree with the same contents may answer a seek so.
    pub(crate) fn may_seek_answer(
        &self,
        session: SessionKey,
        target: &Target,
        offset: u64,
        hole: bool,
        answer: Result<u64, Errno>,
    ) -> bool {
        let state = self.state();
        let object = state.locate(session, target);
        object.is_ok_and(|object| state.fs.may_seek_answer(object.ino, offset, hole, answer))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tree for ModelTree {
    fn attach(&self, session: SessionKey, path: &TreePath) -> Result<Attached, Errno> {
        let mut state = self.state();
        let root = state.walk(ROOT, path)?;
        // Nobody changes anything here but by a request.
        let stat = Stat { leased: true, ..state.fs.stat(root)? };
        if stat.kind != Kind::Directory {
            return Err(Errno::NotDirectory);
        }
        // A session that is resumed keeps its open files.
        state.sessions.entry(session).or_insert_with(|| Session { root, files: BTreeMap::new() });
        Ok(Attached { root: stat, uid: 0, gid: 0, acts_for_callers: true, read_only: false })
    }

    fn serve(&self, session: SessionKey, request: Request, replies: &mut dyn Replies) {
        // Collected first: sending may wait, and the lock is for the tree alone.
        let answers = self.state().answer(session, &request, replies);
        for reply in answers.unwrap_or_default() {
            if replies.send(reply).is_err() {
                return;
            }
        }
    }

    fn end(&self, session: SessionKey) {
        let mut changed = Vec::new();
        let mut state = self.state();
        let ended = state.sessions.remove(&session);
        for kept in ended.into_iter().flat_map(|session| session.files.into_values()) {
            if let Some((dir, name)) = &kept.remove {
                changed.extend(state.removal_touches(*dir, name, kept.ino));
            }
            state.close_kept(kept);
        }
        drop(state);
        let mut tell = self.tell.lock().unwrap_or_else(PoisonError::into_inner);
        for Touched { id, name, .. } in changed {
            tell.iter_mut().for_each(|tell| tell(Outside::Changed { id, name: name.clone(), version: None }));
        }
    }

    fn observe(&self, tell: Tell) {
        *self.tell.lock().unwrap_or_else(PoisonError::into_inner) = Some(tell);
    }

    fn leases(&self) -> Option<Watch> {
        Some(Watch::Filesystem)
    }
}

impl State {
    /// Does it, and tells the replies: nothing while others must hear of it first.
    fn answer(
        &mut self,
        session: SessionKey,
        request: &Request,
        replies: &mut dyn Replies,
    ) -> Result<Vec<Reply>, Parked> {
        replies.touch(&self.touches(session, request))?;
        replies.begins(&mut || self.finds(session, request));
        let outcome = match request {
            Request::Get(get) => self.get(session, get, replies),
            Request::Find(find) => self.find(session, find, replies),
            other => self.answer_once(session, other).map(|reply| vec![reply]),
        };
        if let Some(disk) = self.disk.as_mut().filter(|_| request.is_change()) {
            disk.changed(&self.fs);
        }
        let mut answers = outcome.unwrap_or_else(|errno| vec![Reply::Error(errno.into())]);
        replies.grant(&mut answers.iter_mut().flat_map(stats));
        Ok(answers)
    }

    fn answer_once(&mut self, session: SessionKey, request: &Request) -> Result<Reply, Errno> {
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

    fn session(&self, session: SessionKey) -> Result<&Session, Errno> {
        self.sessions.get(&session).ok_or(Errno::Protocol)
    }

    fn files(&mut self, session: SessionKey) -> Result<&mut BTreeMap<Fd, Kept>, Errno> {
        self.sessions.get_mut(&session).map(|session| &mut session.files).ok_or(Errno::Protocol)
    }

    fn walk(&self, root: Ino, path: &TreePath) -> Result<Ino, Errno> {
        path.names().try_fold(root, |dir, name| self.fs.lookup(dir, name))
    }

    /// The object that `target` means: by its fd where that is this object, else by its path, where it must be.
    fn locate(&self, session: SessionKey, target: &Target) -> Result<Object, Errno> {
        let view = self.session(session)?;
        let is_kept = |ino: Ino| view.files.get(&target.fd).is_some_and(|kept| kept.ino == ino);
        let kept = view.files.get(&target.fd).map(|kept| kept.ino);
        let ino = match (target.id, kept) {
            (Some(id), Some(ino)) if ino.id() == id => ino,
            (expected, _) => self.meant(self.walk(view.root, &target.path), expected)?,
        };
        let kind = self.fs.inode(ino)?.kind();
        Ok(Object { ino, kind, fd: is_kept(ino).then_some(target.fd) })
    }

    /// What was found, if it is what the client expected.
    fn meant(&self, found: Result<Ino, Errno>, expected: Option<FileId>) -> Result<Ino, Errno> {
        match (found, expected) {
            (Ok(ino), Some(id)) if ino.id() != id => Err(Errno::Stale),
            (Err(Errno::NotFound | Errno::NotDirectory), Some(_)) => Err(Errno::Stale),
            (found, _) => found,
        }
    }

    /// The directory at `path`.
    fn directory(
        &self,
        session: SessionKey,
        path: &TreePath,
        expected: Option<FileId>,
    ) -> Result<Ino, Errno> {
        let found = self.walk(self.session(session)?.root, path);
        let is_directory = |ino: &Ino| self.fs.inode(*ino).is_ok_and(|inode| inode.is_directory());
        self.meant(found.and_then(|ino| Some(ino).filter(is_directory).ok_or(Errno::NotDirectory)), expected)
    }

    /// The directory of `place` and the name in it; the root is no entry.
    fn entry<'a>(&self, session: SessionKey, place: &'a Place) -> Result<(Ino, &'a [u8]), Errno> {
        let (dir, name) = place.path.split_last().ok_or(Errno::Busy)?;
        Ok((self.directory(session, &dir, place.dir)?, name))
    }

    fn stat(&self, ino: Ino) -> Option<Stat> {
        self.fs.stat(ino).ok()
    }

    /// Keeps an object open, under the number that it has or a new one.
    fn keep(&mut self, session: SessionKey, object: Object) -> Result<Fd, Errno> {
        if let Some(fd) = object.fd {
            return Ok(fd);
        }
        let files = self.files(session)?;
        let free = (0..FDS_MAX as u16).map(Fd).find(|fd| !files.contains_key(fd));
        let Some(fd) = free else { return Ok(NOFD) };
        files.insert(fd, Kept { ino: object.ino, remove: None });
        self.fs.hold(object.ino);
        Ok(fd)
    }

    /// Closes what is kept under the object's number.
    fn close(&mut self, session: SessionKey, object: Object) -> Result<(), Errno> {
        let Some(fd) = object.fd else { return Ok(()) };
        if let Some(kept) = self.files(session)?.remove(&fd) {
            self.close_kept(kept);
        }
        Ok(())
    }

    fn close_kept(&mut self, kept: Kept) {
        if let Some((dir, name)) = kept.remove {
            self.remove_if_still(dir, &name, kept.ino);
        }
        self.fs.release(kept.ino);
    }

    /// Removes a name if it is still this object's.
    fn remove_if_still(&mut self, dir: Ino, name: &[u8], ino: Ino) {
        if self.fs.lookup(dir, name) == Ok(ino) {
            // A directory is not removed so; the name then stays.
            let _ = self.fs.unlink(dir, name);
        }
    }
}

/// The attributes that a reply tells, those in listings apart.
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
        | Reply::Limited(_) => [None, None, None],
    };
    stats.into_iter().flatten()
}
