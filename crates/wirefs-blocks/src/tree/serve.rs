//! Execution of Op requests.

use super::BlockTree;
use super::locate::root_of;
use crate::affected::{AffectedObject, Postponed, UnrequestedChange};
use crate::halt::Halt;
use wirefs_op::message::target::Target;
use wirefs_op::{Errno, FileId, Kind, Reply, Request, Stat, TreePath};

/// The request was canceled or its connection closed: further replies are discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestAborted;

/// Receives the replies to one request.
pub trait ReplySink {
    /// Sends one reply. Every reply is the last one, except an Rget without LAST. Blocks while the connection
    /// applies backpressure.
    ///
    /// # Errors
    /// [`RequestAborted`]: further replies are not wanted.
    fn send(&mut self, reply: Reply) -> Result<(), RequestAborted>;

    /// Allows the next change of the session to start before this request ends.
    fn allow_next_change(&mut self) {}

    /// Announces the objects that the request is about to modify, after it has located them all.
    ///
    /// # Errors
    /// [`Postponed`]: leases must be recalled first. Nothing was modified or sent; the caller repeats the
    /// request.
    fn announce(&mut self, affected: &[AffectedObject]) -> Result<(), Postponed> {
        let _ = affected;
        Ok(())
    }

    /// Marks attributes that the client may cache under a lease. All are of the live tree.
    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        let _ = stats;
    }

    /// Returns whether the client may cache names of this directory under a lease.
    fn grant_names(&mut self, dir: FileId) -> bool {
        let _ = dir;
        false
    }
}

/// The result of an attach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttachedRoot {
    /// The attributes of the root.
    pub root: Stat,
    /// Whether the tree is read-only because it is a checkpoint.
    pub is_read_only: bool,
}

/// The reason for which a request ends without its last reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    Errno(Errno),
    /// Further replies are not wanted.
    RequestAborted,
    /// Leases must be recalled first; nothing was modified.
    Postponed,
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Failure {
        Failure::Errno(errno)
    }
}

impl From<RequestAborted> for Failure {
    fn from(_: RequestAborted) -> Failure {
        Failure::RequestAborted
    }
}

impl BlockTree {
    /// Opens a session rooted at `path`.
    ///
    /// # Errors
    /// Those of opening a directory.
    pub fn attach(&self, session: u64, path: &TreePath) -> Result<AttachedRoot, Errno> {
        let ((object, stat), _) = self.read_tree(|trees| {
            let object = trees.walk(root_of(0), path)?;
            if object.kind != Kind::Directory {
                return Err(Halt::Failed(Errno::NotDirectory));
            }
            Ok((object, trees.stat(object.id)?))
        })?;
        self.open_session(session, object.id);
        Ok(AttachedRoot { root: stat, is_read_only: object.id.fs != 0 })
    }

    /// Returns the attributes of the target of a request.
    ///
    /// # Errors
    /// Those of its lookup.
    pub fn stat(&self, session: u64, target: &Target) -> Result<Stat, Errno> {
        let context = self.context(session, target.fd)?;
        let (stat, _) = self.read_tree(|trees| trees.stat(trees.locate(context, target)?.id))?;
        Ok(stat)
    }

    /// Executes one request (any but Version, Attach, Flush and Ping) and sends all replies. A failure is
    /// sent as Rerror.
    ///
    /// Several threads may call it concurrently; it blocks while blocks are retrieved. The caller preserves
    /// the order of changes of a session.
    pub fn serve(&self, session: u64, request: &Request, replies: &mut dyn ReplySink) {
        let outcome = match request {
            Request::Get(get) => self.get(session, get, replies),
            Request::Find(find) => self.find(session, find, replies),
            other => {
                let reply = self.answer_once(session, other, replies);
                reply.and_then(|mut reply| {
                    replies.grant(&mut present_stats(&mut reply));
                    Ok(replies.send(reply)?)
                })
            }
        };
        match outcome {
            Ok(()) | Err(Failure::RequestAborted | Failure::Postponed) => {}
            Err(Failure::Errno(errno)) => {
                // A closed connection needs no reply.
                let _gone = replies.send(Reply::Error(errno.into()));
            }
        }
    }

    fn answer_once(
        &self,
        session: u64,
        request: &Request,
        replies: &mut dyn ReplySink,
    ) -> Result<Reply, Failure> {
        Ok(match request {
            Request::Put(put) => Reply::Put(self.put(session, put, replies)?),
            Request::Remove(remove) => Reply::Remove(self.remove(session, remove, replies)?),
            Request::Rename(rename) => Reply::Rename(self.rename(session, rename, replies)?),
            Request::Link(link) => Reply::Link(self.link(session, link, replies)?),
            Request::Xattr(xattr) => Reply::Xattr(self.xattr(session, xattr, replies)?),
            Request::Statfs(statfs) => Reply::Statfs(self.statfs(session, statfs)?),
            Request::Allocate(allocate) => Reply::Allocate(self.allocate(session, allocate, replies)?),
            Request::Copy(copy) => Reply::Copy(self.copy(session, copy, replies)?),
            Request::Seek(seek) => Reply::Seek(self.seek(session, seek)?),
            Request::Commit(commit) => Reply::Commit(self.sync(session, commit, replies)?),
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
    /// Registers an observer of modifications that no request announced: names removed at the end of a
    /// session, and restored trees. The observer runs during the change and must not call this tree.
    pub fn observe(&self, notify: Box<dyn FnMut(UnrequestedChange) + Send>) {
        *self.observer() = Some(notify);
    }

    pub(super) fn notify(&self, change: UnrequestedChange) {
        if let Some(notify) = self.observer().as_mut() {
            notify(change);
        }
    }
}

/// Returns the attributes in a reply that belong to the live tree. Those of checkpoints never change, but the
/// checkpoint may be dropped.
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
        | Reply::Limited(_)
        | Reply::Times(_) => [None, None, None],
    };
    stats.into_iter().flatten().filter(|stat| stat.id.fs == 0)
}
