//! Steps: work that a function leaves to the client, which executes it in order before the current input ends
//! (`settling.rs`). So a function that sends or answers never has to call one that continues other calls.

use crate::call::{Answer, CallId, Handle};
use crate::pending::Pending;
use crate::view::files::Reader;
use crate::view::publications::AfterPublishing;
use wirefs_cache::TreeNodeId;
use wirefs_op::{Errno, Reply, Stat};

/// A step.
#[derive(Debug)]
pub(crate) enum Step {
    /// Take in an optimistic reply.
    TakeOptimisticReply(Box<OptimisticReply>),
    /// End a request that is not sent, or whose reply will not come.
    Fail(Pending, Errno),
    /// Undo an answer whose caller is gone.
    Undo(CallId, Answer),
    /// Continue the calls that wait for changes of this node, one of which was answered.
    ChangeEnded(TreeNodeId),
    /// Answer the reads of this node whose data is here.
    ServeReaders(TreeNodeId),
    /// Fail a read that waits for contents.
    FailReader(Reader, Errno),
    /// Continue the opens that wait for contents of this directory or file; all of them if no more contents arrive.
    ServeJoined(TreeNodeId, bool),
    /// Continue the call that waited for the publication of a copy.
    PublicationEnded(TreeNodeId, Handle, AfterPublishing, Option<Errno>),
}

/// The certain reply to a change that was issued.
#[derive(Debug)]
pub(crate) struct OptimisticReply {
    /// The number of the change.
    pub(crate) number: u64,
    pub(crate) pending: Pending,
    pub(crate) reply: Reply,
    /// The new attributes of an object that the reply does not describe.
    pub(crate) besides: Option<(TreeNodeId, Stat)>,
}
