//! The traits `Tree` and `Replies`. A tree is a host directory, a block tree, a model, or a remote tree.

use crate::saved_ledger::PriorState;
use bytes::Bytes;
pub use wirefs_lease::{PartyKey, Touched};
use wirefs_op::message::attach::Watch;
use wirefs_op::{Errno, FileId, Reply, Request, Stat, TreePath};

/// The identifier of a session for the tree: small, unique while the server runs, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(pub u64);

/// The result of an attach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// The root's attributes; `leased` if the tree detects external changes of the root, so that the root can be
    /// leased.
    pub root: Stat,
    /// The user as which the tree accesses files.
    pub uid: u32,
    /// The group as which the tree accesses files.
    pub gid: u32,
    /// Whether the tree can act for the `Cred` in a request.
    pub acts_for_callers: bool,
    /// Whether changes are refused.
    pub read_only: bool,
}

/// The request was flushed or its connection is gone: further replies are not wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// A change that was not made through this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExternalChange {
    /// An object changed, or the meaning of one name.
    Changed {
        /// The object; with a name, the directory of the name.
        id: FileId,
        /// The name of an object that was created, removed, moved or replaced. The attributes of the directory have
        /// changed as well. So has the object that the name referred to before: if its new place is not watched, or if
        /// it is gone, there is no other report of it.
        name: Option<Bytes>,
        /// The version of `id` after the change. The server compares it with the versions of its own changes.
        /// `None` if the tree leaves out own changes, or if the object is gone.
        version: Option<u64>,
    },
    /// Events were lost: all cached data may be out of date.
    Lost,
}

/// The callback for external changes.
pub type ObserveChange = Box<dyn FnMut(ExternalChange) + Send>;

/// Other clients must answer a recall first. The request is parked and starts again afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parked;

/// The receiver of one request's replies, and of the notifications about its changes.
pub trait Replies {
    /// Sends one reply. Every reply but an Rget without LAST ends the request. Blocks while the connection's send
    /// queue is full, so that a stream needs bounded memory.
    ///
    /// # Errors
    /// [`Stopped`]: further replies are not wanted.
    fn send(&mut self, reply: Reply) -> Result<(), Stopped>;

    /// Whether further replies are not wanted. Long requests check now and then; a waiting lock checks before each
    /// try.
    fn is_stopped(&self) -> bool;

    /// Releases the write slot before the request ends, so that the session's next change can start. For a commit
    /// that only waits for the disk, and for a lock that waits. Does nothing for requests without the slot.
    fn release_slot(&mut self) {}

    /// States the objects that the request is about to change, after it has found all of them and before it changes
    /// any. Further calls may add objects, but the first call has all directories whose names change.
    ///
    /// # Errors
    /// [`Parked`]: the tree must return at once, without a change and without a reply. It gets the same request
    /// again later.
    fn touch(&mut self, touched: &[Touched]) -> Result<(), Parked> {
        let _ = touched;
        Ok(())
    }

    /// Records the state before a change that is not idempotent. Called right before the change, after the last
    /// call of [`touch`](Replies::touch). For CREATE of an absent name, APPEND, REMOVE, Tremove, Trename, Tlink,
    /// and Txattr with XATTR_CREATE or that removes. `find` is called only if the state is recorded; it returns
    /// `None` if the change is idempotent after all.
    fn record_prior_state(&mut self, find: &mut dyn FnMut() -> Option<PriorState>) {
        let _ = find;
    }

    /// Sets `leased` in the attributes for which the client gets a lease. Only for objects whose external changes
    /// the tree detects, and only for attributes that were read since the request began.
    ///
    /// # Cost
    /// One lock for the whole batch.
    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        let _ = stats;
    }

    /// Whether the client gets a lease on the names of this directory.
    fn grant_names(&mut self, dir: FileId) -> bool {
        let _ = dir;
        false
    }

    /// Reports a finished change, so that a watch event about it is not taken for an external change. For trees
    /// that report external changes with a version. `before`: the version before the change, if known; `after`: the
    /// version after it, `None` if the object is gone. For a name, both are versions of the directory.
    fn changed(&mut self, touched: &Touched, before: Option<u64>, after: Option<u64>) {
        let _ = (touched, before, after);
    }

    /// Sleeps until `is_stopped` may have changed or a lock of this tree was released, at most a few hundred
    /// milliseconds. For waiting locks.
    fn wait(&mut self);
}

/// A tree of files that answers Op.
///
/// Called from several threads. The caller ensures that changes of one session never run at the same time.
pub trait Tree: Send + Sync + 'static {
    /// Notes the client that a session belongs to, before it attaches: a tree with bounded tables gives each client a
    /// fair share.
    fn introduce(&self, session: SessionKey, party: &PartyKey) {
        let _ = (session, party);
    }

    /// Opens `path` as the root of this session's paths.
    ///
    /// # Errors
    /// As for opening a directory.
    fn attach(&self, session: SessionKey, path: &TreePath) -> Result<Attached, Errno>;

    /// Executes one request (any but Version, Attach, Flush and Ping) and sends all its replies, including the last
    /// one. A failure is sent as Rerror.
    ///
    /// First the request finds all objects that it changes, then it calls [`Replies::touch`], then it changes them.
    fn serve(&self, session: SessionKey, request: Request, replies: &mut dyn Replies);

    /// Ends the session: closes its open files and releases its locks.
    fn end(&self, session: SessionKey);

    /// Sets the callback for changes that are not made through [`serve`](Tree::serve). Called once, before any
    /// other method.
    fn observe(&self, tell: ObserveChange) {
        let _ = tell;
    }

    /// Reads the current state of an object or name that was reported before, and reports it again.
    fn verify(&self, id: FileId, name: Option<&[u8]>, tell: &mut dyn FnMut(ExternalChange)) {
        let name = name.map(Bytes::copy_from_slice);
        tell(ExternalChange::Changed { id, name, version: None });
    }

    /// Releases watches that no lease needs; called periodically. `known` returns for each object whether it is
    /// leased. Returns a warning for the administrator, if there is one.
    fn trim_watches(&self, known: &dyn Fn(&[FileId]) -> Vec<bool>) -> Option<String> {
        let _ = known;
        None
    }

    /// Sets a callback for threads that serve a short read-only request ([`Order::Free`](wirefs_op::Order::Free),
    /// [`Weight::Quick`](wirefs_op::Weight::Quick)) and are about to block. Returns false if the tree never calls
    /// it.
    fn notify_before_blocking(&self, tell: fn()) -> bool {
        let _ = tell;
        false
    }

    /// The external changes that the tree detects. `None`: the tree grants no leases.
    fn leases(&self) -> Option<Watch> {
        None
    }
}
