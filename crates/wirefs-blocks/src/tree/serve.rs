//! From requests to replies.

use super::BlockTree;
use super::locate::root_of;
use crate::halt::Halt;
use crate::touch::{Parked, Touch, Unasked};
use wirefs_op::message::target::Target;
use wirefs_op::{Errno, FileId, Kind, Reply, Request, Stat, TreePath};

/// The request was given up, or its connection is gone: no more replies are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// Where the replies to one request go.
pub trait Answers {
    /// Sends one reply. The last reply to a request is any but an Rget without LAST. Waits while the wire is behind.
    ///
    /// # Errors
    /// [`Stopped`]: nobody wants the rest.
    fn send(&mut self, reply: Reply) -> Result<(), Stopped>;

    /// Lets the session's next change start although this request goes on.
    fn pass_turn(&mut self) {}

    /// Hears what the request is about to change, after all of it was found and before any of it is changed.
    ///
    /// # Errors
    /// [`Parked`]: nothing is changed nor sent, and the request is to be made anew later.
    fn touch(&mut self, touched: &[Touch]) -> Result<(), Parked> {
        let _ = touched;
        Ok(())
    }

    /// May mark attributes that the client can believe until it is told otherwise. They are of the present tree.
    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        let _ = stats;
    }

    /// Whether what is told of names in this directory can be believed until the client is told otherwise.
    fn grant_place(&mut self, dir: FileId) -> bool {
        let _ = dir;
        false
    }
}

/// What an attach found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attached {
    /// The root's attributes.
    pub root: Stat,
    /// Whether changes are refused: it is a checkpoint.
    pub is_read_only: bool,
}

/// Why a request ends before its last reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    Errno(Errno),
    /// Nobody wants the rest.
    Stopped,
    /// Others are to be told first; nothing was changed.
    Parked,
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Failure {
        Failure::Errno(errno)
    }
}

impl From<Stopped> for Failure {
    fn from(_: Stopped) -> Failure {
        Failure::Stopped
    }
}

impl BlockTree {
    /// Opens `path` as the root of a session's paths.
    ///
    /// # Errors
    /// As for opening a directory.
    pub fn attach(&self, session: u64, path: &TreePath) -> Result<Attached, Errno> {
        let ((object, stat), _) = self.look(|trees| {
            let object = trees.walk(root_of(0), path)?;
            if object.kind != Kind::Directory {
                return Err(Halt::Failed(Errno::NotDirectory));
            }
            Ok((object, trees.stat(object.id)?))
        })?;
        self.admit(session, object.id);
        Ok(Attached { root: stat, is_read_only: object.id.fs != 0 })
    }

    /// The attributes of what a request means.
    ///
    /// # Errors
    /// As for looking at it.
    pub fn stat(&self, session: u64, target: &Target) -> Result<Stat, Errno> {
        let seat = self.seat(session, target.fd)?;
        let (stat, _) = self.look(|trees| trees.stat(trees.locate(seat, target)?.id))?;
        Ok(stat)
    }

    /// Does what one request asks (any but Version, Attach, Flush and Ping) and sends all its replies, the last one
    /// included; failures are sent as Rerror. May be called from several threads at once; blocks while blocks are on
    /// their way. The caller keeps the order of a session's changes.
    pub fn serve(&self, session: u64, request: &Request, answers: &mut dyn Answers) {
        let outcome = match request {
            Request::Get(get) => self.get(session, get, answers),
            Request::Find(find) => self.find(session, find, answers),
            other => {
                let reply = self.answer_once(session, other, answers);
                reply.and_then(|mut reply| {
                    answers.grant(&mut present_stats(&mut reply));
                    Ok(answers.send(reply)?)
                })
            }
        };
        match outcome {
            Ok(()) | Err(Failure::Stopped | Failure::Parked) => {}
            Err(Failure::Errno(errno)) => {
                // Whoever is gone needs no answer.
                let _gone = answers.send(Reply::Error(errno.into()));
            }
        }
    }

    fn answer_once(
        &self,
        session: u64,
        request: &Request,
        answers: &mut dyn Answers,
    ) -> Result<Reply, Failure> {
        Ok(match request {
            Request::Put(put) => Reply::Put(self.put(session, put, answers)?),
            Request::Remove(remove) => Reply::Remove(self.remove(session, remove, answers)?),
            Request::Rename(rename) => Reply::Rename(self.rename(session, rename, answers)?),
            Request::Link(link) => Reply::Link(self.link(session, link, answers)?),
            Request::Xattr(xattr) => Reply::Xattr(self.xattr(session, xattr, answers)?),
            Request::Statfs(statfs) => Reply::Statfs(self.statfs(session, statfs)?),
            Request::Allocate(allocate) => Reply::Allocate(self.allocate(session, allocate, answers)?),
            Request::Copy(copy) => Reply::Copy(self.copy(session, copy, answers)?),
            Request::Seek(seek) => Reply::Seek(self.seek(session, seek)?),
            Request::Commit(commit) => Reply::Commit(self.sync(session, commit, answers)?),
            Request::Lock(_) => return Err(Errno::NotSupported.into()),
            Request::Version(_)
            | Request::Attach(_)
            | Request::Flush(_)
            | Request::Ping(_)
            | Request::Recalled(_)
            | Request::Number(_)
            | Request::Find(_)
            | Request::Get(_) => return Err(Errno::Protocol.into()),
        })
    }
}

impl BlockTree {
    /// Has told from now on what changes although no request said so before: names that go with the end of a session,
    /// trees that are restored. Called while the change is made; it must not ask this tree for anything.
    pub fn observe(&self, tell: Box<dyn FnMut(Unasked) + Send>) {
        *self.observer() = Some(tell);
    }

    pub(super) fn tell(&self, unasked: Unasked) {
        if let Some(tell) = self.observer().as_mut() {
            tell(unasked);
        }
    }
}

/// The attributes that a reply tells of objects of the present tree. What a checkpoint holds does not change, but may go
/// with it.
fn present_stats(reply: &mut Reply) -> impl Iterator<Item = &mut Stat> {
    let stats = match reply {
        Reply::Get(got) => [got.stat.as_mut(), None, None],
        Reply::Put(put) => [put.stat.as_mut(), put.dir.as_mut(), None],
        Reply::Remove(remove) => [remove.dir.as_mut(), None, None],
        Reply::Rename(rename) => [rename.stat.as_mut(), rename.from_dir.as_mut(), rename.to_dir.as_mut()],
        Reply::Link(link) => [link.stat.as_mut(), link.dir.as_mut(), None],
        Reply::Xattr(xattr) => [xattr.stat.as_mut(), None, None],
        Reply::Allocate(allocate) => [allocate.stat.as_mut(), None, None],
        Reply::Copy(copy) => [copy.stat.as_mut(), None, None],
        Reply::Lock(lock) => [lock.stat.as_mut(), None, None],
        Reply::Version(_)
        | Reply::Attach(_)
        | Reply::Error(_)
        | Reply::Flush(_)
        | Reply::Ping(_)
        | Reply::Statfs(_)
        | Reply::Seek(_)
        | Reply::Commit(_)
        | Reply::Find(_)
        | Reply::Recall(_)
        | Reply::Alone(_)
        | Reply::Limited(_) => [None, None, None],
    };
    stats.into_iter().flatten().filter(|stat| stat.id.fs == 0)
}
