//! The trait that makes everything a tree: a host directory, a block tree, a model, a remote tree.

use crate::notes::Found;
use bytes::Bytes;
pub use wirefs_lease::Touched;
use wirefs_op::message::attach::Watch;
use wirefs_op::{Errno, FileId, Reply, Request, Stat, TreePath};

/// One session, as the tree knows it: small, unique while the server runs, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(pub u64);

/// What an attach found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// The root's attributes; `leased` where its changes are noticed, so that they may be promised.
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

/// A change that no client of this server made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outside {
    /// An object changed, or what one name means.
    Changed {
        /// The object; with a name, the directory that the name is in.
        id: FileId,
        /// The name that means something else now; the directory's own attributes have changed with it.
        name: Option<Bytes>,
        /// The version of `id`, read after the change, by which changes of this server's own are recognised. `None` where
        /// these are left out already, or the object is gone.
        version: Option<u64>,
    },
    /// All that was known may be wrong.
    Lost,
}

/// Who hears of changes from outside.
pub type Tell = Box<dyn FnMut(Outside) + Send>;

/// Others must first be told of the change: the request is put aside, and begins anew when they have answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parked;

/// Where the replies to one request go, and who else must hear of what it does.
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
    /// only waits for the disk, and for a lock that waits: what was sent before it is done, and what comes after it need not wait. Nothing for
    /// requests that have no turn.
    fn pass_turn(&mut self) {}

    /// Says what the request is about to change, after all of it was found and before any of it is changed. May be called
    /// again with more, but directories whose names change are all in the first call.
    ///
    /// # Errors
    /// [`Parked`]: the tree returns at once, having changed nothing and sent nothing, and is handed the same request again
    /// later.
    fn touch(&mut self, touched: &[Touched]) -> Result<(), Parked> {
        let _ = touched;
        Ok(())
    }

    /// Says what a change finds that is not the same when it is done twice. The last word before it changes anything: it is not
    /// put aside any more. For CREATE of a name that is not there, APPEND, REMOVE, Tremove, Trename, Tlink, and Txattr that must
    /// or must not find the attribute. `find` is asked only where it matters; `None`: doing it twice is as good as once.
    fn begins(&mut self, find: &mut dyn FnMut() -> Option<Found>) {
        let _ = find;
    }

    /// Marks the attributes that the client may believe until it is told otherwise. For objects of which each change is
    /// noticed that is not made through this server. What is told of them was read since the request began.
    ///
    /// # Cost
    /// One lock for all together: a listing grants its entries in batches.
    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        let _ = stats;
    }

    /// Whether what the client was told of names in this directory may be believed until it is told otherwise.
    fn grant_place(&mut self, dir: FileId) -> bool {
        let _ = dir;
        false
    }

    /// Says what was just changed, so that a watch that reports it is not believed to mean somebody else. For trees that
    /// tell of changes from outside with a version. `before`: the version that was changed, if it is known; `after`: the one
    /// that was left behind, none if the object is gone; of a name, the directory's.
    fn changed(&mut self, touched: &Touched, before: Option<u64>, after: Option<u64>) {
        let _ = (touched, before, after);
    }

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
    ///
    /// What a request changes is found first, then told with [`Replies::touch`], then changed.
    fn serve(&self, session: SessionKey, request: Request, replies: &mut dyn Replies);

    /// The session is over: its open files are closed, its locks released.
    fn end(&self, session: SessionKey);

    /// Has changes that are not made through [`serve`](Tree::serve) told from now on, as far as they are noticed. Once, before
    /// anything else.
    fn observe(&self, tell: Tell) {
        let _ = tell;
    }

    /// Looks again at something that was told before, and tells how it is now.
    fn verify(&self, id: FileId, name: Option<&[u8]>, tell: &mut dyn FnMut(Outside)) {
        let name = name.map(Bytes::copy_from_slice);
        tell(Outside::Changed { id, name, version: None });
    }

    /// Lets go of what is kept for promises that nobody relies on any more; called now and then. `known`: of these objects,
    /// those about which a promise was made and not taken back. Returns what whoever runs the server should know.
    fn tend(&self, known: &dyn Fn(&[FileId]) -> Vec<bool>) -> Option<String> {
        let _ = known;
        None
    }

    /// Has `tell` called from now on by each thread that serves a short request which changes nothing ([`Order::Free`](wirefs_op::Order::Free),
    /// [`Weight::Quick`](wirefs_op::Weight::Quick)) and is about to wait. False: it is not.
    fn before_waiting(&self, tell: fn()) -> bool {
        let _ = tell;
        false
    }

    /// Which changes are noticed that are not made through this server. `None`: nobody is promised anything about what is
    /// in this tree.
    fn leases(&self) -> Option<Watch> {
        None
    }
}
