//! The trait that makes everything a tree: a host directory, a block tree, a model, a remote tree.

use wirefs_op::{Errno, Reply, Request, Stat, TreePath};

/// One session, as the tree knows it: small, unique while the server runs, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(pub u64);

/// What an attach found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// The root's attributes.
    pub root: Stat,
    /// The user that the tree acts as.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Whether the tree can act on behalf of the `Cred` in a request.
    pub acts_for_callers: bool,
    /// Whether changes are refused.
    pub read_only: bool,
}

/// The request was flushed or its connection is gone: no more replies are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// Where the replies to one request go.
pub trait Replies {
    /// Sends one reply. The last reply to a request is any but an Rget without LAST. Waits while the wire is behind, so
    /// a stream never fills memory.
    ///
    /// # Errors
    /// [`Stopped`]: nobody wants the rest.
    fn send(&mut self, reply: Reply) -> Result<(), Stopped>;

    /// Whether nobody wants the rest. Long work asks now and then; a waiting lock asks before each try.
    fn is_stopped(&self) -> bool;

    /// Lets the session's next change start although this request goes on. For a commit that has found its object and
    /// only waits for the disk: what was sent before it is done, and what comes after it need not wait. Nothing for
    /// requests that have no turn.
    fn pass_turn(&mut self) {}

    /// Sleeps until `is_stopped` may have changed or a lock of this tree was released, bounded by a few hundred
    /// milliseconds; for waiting locks.
    fn wait(&mut self);
}

/// A tree of files that answers Op.
///
/// Called from several threads at once. The caller keeps the order: changes of one session never run beside each other.
pub trait Tree: Send + Sync + 'static {
    /// Opens `path` as the root of this session's paths.
    ///
    /// # Errors
    /// As for opening a directory.
    fn attach(&self, session: SessionKey, path: &TreePath) -> Result<Attached, Errno>;

    /// Does what one request asks (any but Version, Attach, Flush and Ping) and sends all its replies, the last one
    /// included; failures are sent as Rerror.
    fn serve(&self, session: SessionKey, request: Request, replies: &mut dyn Replies);

    /// The session is over: its open files are closed, its locks released.
    fn end(&self, session: SessionKey);
}
