//! What must not happen since a barrier of a session has failed.
//!
//! A client that sends a barrier relies on it before it hears of it: what it sends behind it is to be on stable storage only if the
//! barrier's object is. If that fails, all contents that come behind it fail as well, and all that would say that they are safe, until
//! the client says that it has heard of it: from then on it knows what it does (PROTOCOL.md, "Barriers").
//!
//! ```text
//!   open      nothing has failed                                                       all pass
//!   closed    the barrier with the number `at` has failed                              no contents above `at` pass, and no commit
//!   heard     Tnumber says that replies up to `at` have come, and of what comes next   from that number on all pass
//! ```

use wirefs_op::message::number::Tnumber;
use wirefs_op::message::put::PutMode;
use wirefs_op::{Reply, Request};

/// Whether those behind it in the line wait until it is over.
pub(super) fn is_barrier(request: &Request) -> bool {
    matches!(request, Request::Put(put) if put.is_barrier())
}

/// Whether a request changes what is in a file that exists, or says that it is safe.
fn is_of_contents(request: &Request) -> bool {
    match request {
        Request::Put(put) => {
            let is_change = put.mode.has(PutMode::DATA) || put.set.size.is_some() || put.is_barrier();
            is_change && !put.mode.has(PutMode::CREATE)
        }
        Request::Allocate(_) | Request::Copy(_) | Request::Commit(_) => true,
        _ => false,
    }
}

/// The barriers that have failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Fence {
    /// None, of which the client has not heard.
    #[default]
    Open,
    /// The last of them.
    Closed { at: u64 },
    /// The client has heard of it, and what is sent from the change `from` on does not rely on it.
    Heard { at: u64, from: u64 },
}

impl Fence {
    /// A request of the session has this reply.
    pub(super) fn saw(&mut self, number: Option<u64>, is_barrier: bool, reply: &Reply) {
        if let (Some(at), true, Reply::Error(_)) = (number, is_barrier, reply) {
            *self = Fence::Closed { at };
        }
    }

    /// The client says how far it has replies, and is about to send a change.
    pub(super) fn heard(&mut self, told: &Tnumber) {
        match *self {
            Fence::Closed { at } if told.answered > at => *self = Fence::Heard { at, from: told.number },
            Fence::Open | Fence::Closed { .. } | Fence::Heard { .. } => {}
        }
    }

    /// Whether a request may be carried out whose turn it is.
    pub(super) fn passes(&self, number: Option<u64>, request: &Request) -> bool {
        let is_ruled = is_of_contents(request);
        match *self {
            Fence::Open => true,
            Fence::Closed { at } => !is_ruled || number.is_some_and(|number| number <= at),
            // What has no number is a commit: it says nothing of changes that were refused.
            Fence::Heard { at, from } => {
                !is_ruled || number.is_none_or(|number| number <= at || number >= from)
            }
        }
    }
}
