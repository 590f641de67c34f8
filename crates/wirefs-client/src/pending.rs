//! Continuations: for each request in progress, the data with which its operation continues when the reply arrives, and the
//! treatment of the request when the connection breaks or the deadline passes.

mod attributes;
mod contents;
mod continuation;
mod handles;
mod listing;
mod locks;
mod names;
mod publishing;

pub(crate) use attributes::{Getting, Linkreading, Setting, XattrAsking, XattrUse};
pub(crate) use contents::{Allocating, Barrier, Committing, Copying, Exact, Fetching, Seeking, Writing};
pub(crate) use continuation::{Affected, Continuation};
pub(crate) use handles::{Acquiring, Closing, Opening, Prefetching};
pub(crate) use listing::{ArrivingListing, FindBounds, FindStream, FindTotals, Listing, ListingReader};
pub(crate) use locks::{LockWanted, Locking, Unlocking};
pub(crate) use names::{Linking, Looking, Making, Removing, Renaming};
pub(crate) use publishing::{PublishStep, Publishing, ReplacedFile, ReplacedStep};

use crate::call::CallId;
use wirefs_cache::TreeNodeId;
use wirefs_op::Tag;

/// Defines the continuations, with one line for each kind of request.
macro_rules! continuations {
    ($($(#[$doc:meta])* $kind:ident($data:ty),)*) => {
        /// The continuation of one request.
        #[derive(Clone, Debug)]
        pub(crate) enum Pending {
            $($(#[$doc])* $kind($data),)*
        }

        impl Pending {
            fn data(&self) -> &dyn Continuation {
                match self {
                    $(Pending::$kind(data) => data,)*
                }
            }

            fn data_mut(&mut self) -> &mut dyn Continuation {
                match self {
                    $(Pending::$kind(data) => data,)*
                }
            }
        }
    };
}

continuations! {
    /// No operation continues.
    Ignore(Ignored),
    Close(Closing),
    Lookup(Looking),
    Getattr(Getting),
    Setattr(Setting),
    Readlink(Linkreading),
    Make(Making),
    Remove(Removing),
    Rename(Renaming),
    Link(Linking),
    Open(Opening),
    AcquireFd(Acquiring),
    Fetch(Fetching),
    ReadExactly(Exact),
    Write(Writing),
    List(Listing),
    Find(FindStream),
    Prefetch(Prefetching),
    Xattr(XattrAsking),
    Statfs(Figures),
    Lock(Locking),
    Unlock(Unlocking),
    /// Tflush of a waiting lock.
    Withdraw(Withdrawing),
    Allocate(Allocating),
    Copy(Copying),
    Seek(Seeking),
    Commit(Committing),
    Barrier(Barrier),
    Publish(Publishing),
    Replaced(ReplacedFile),
    /// A change that was answered before its reply.
    Confirm(Confirming),
    /// The room on the server's disk; no call waits.
    Room(RoomAsking),
    /// A sync of the server's disk; no call waits.
    Durable(Syncing),
}

impl Pending {
    /// The continuation of a request whose reply is not used.
    pub(crate) const IGNORE: Pending = Pending::Ignore(Ignored);
}

impl Continuation for Pending {
    fn leaves_fd(&self) -> bool {
        self.data().leaves_fd()
    }

    fn change_of(&self) -> Option<CallId> {
        self.data().change_of()
    }

    fn affected(&self) -> Affected {
        self.data().affected()
    }

    fn counted_node(&self) -> Option<TreeNodeId> {
        self.data().counted_node()
    }

    fn outlives_deadline(&self) -> bool {
        self.data().outlives_deadline()
    }

    fn restart(&mut self) -> bool {
        self.data_mut().restart()
    }

    fn repeat(&mut self) {
        self.data_mut().repeat();
    }
}

/// The reply is not used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ignored;

impl Continuation for Ignored {
    fn leaves_fd(&self) -> bool {
        true
    }

    fn restart(&mut self) -> bool {
        false
    }
}

/// The figures of the file system, for this call; `None`: no call waits yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures(pub(crate) Option<CallId>);

impl Continuation for Figures {}

/// The withdrawal of the request with this tag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Withdrawing(pub(crate) Tag);

impl Continuation for Withdrawing {
    fn restart(&mut self) -> bool {
        false
    }
}

/// The number of a change that its program was answered before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Confirming(pub(crate) u64);

impl Continuation for Confirming {
    fn leaves_fd(&self) -> bool {
        true
    }

    fn outlives_deadline(&self) -> bool {
        true
    }
}

/// A question about the room on the server's disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoomAsking;

impl Continuation for RoomAsking {
    fn restart(&mut self) -> bool {
        false
    }
}

/// A sync of all changes below this number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Syncing(pub(crate) u64);

impl Continuation for Syncing {
    fn restart(&mut self) -> bool {
        false
    }
}
