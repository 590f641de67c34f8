//! The fence of a session: requests that are refused after a failed barrier.
//!
//! A client sends further changes before it knows the result of a barrier. It relies on the barrier's object being
//! on stable storage before them. If the barrier fails, all later writes and commits fail too, until the client
//! acknowledges the failure (PROTOCOL.md, "Barriers").
//!
//! ```text
//!   open           no barrier has failed                                  all requests are allowed
//!   closed         the barrier with number `at` has failed                no writes above `at`, and no commits
//!   acknowledged   Tnumber acknowledged replies up to `at`,               all requests from that number on
//!                  and announced the next number
//! ```

use wirefs_op::message::number::Tnumber;
use wirefs_op::message::put::PutMode;
use wirefs_op::{Reply, Request};

/// Whether later ordered requests wait for the end of this one.
pub(super) fn is_barrier(request: &Request) -> bool {
    matches!(request, Request::Put(put) if put.is_barrier())
}

/// Whether a request changes the contents of an existing file, or confirms that they are stable.
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

/// The state after failed barriers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Fence {
    /// The client knows of every failure.
    #[default]
    Open,
    /// The last failed barrier has this number.
    Closed { at: u64 },
    /// The client knows that barrier `at` has failed, so the changes with numbers from `from` on do not rely on it.
    Acknowledged { at: u64, from: u64 },
}

impl Fence {
    /// Notes the reply to a request.
    pub(super) fn reply_sent(&mut self, number: Option<u64>, is_barrier: bool, reply: &Reply) {
        if let (Some(at), true, Reply::Error(_)) = (number, is_barrier, reply) {
            *self = Fence::Closed { at };
        }
    }

    /// Notes the acknowledgment in a Tnumber.
    pub(super) fn acknowledge(&mut self, announced: &Tnumber) {
        match *self {
            Fence::Closed { at } if announced.answered > at => {
                *self = Fence::Acknowledged { at, from: announced.number }
            }
            Fence::Open | Fence::Closed { .. } | Fence::Acknowledged { .. } => {}
        }
    }

    /// Whether a request that got the write slot may be executed.
    pub(super) fn allows(&self, number: Option<u64>, request: &Request) -> bool {
        let is_ruled = is_of_contents(request);
        match *self {
            Fence::Open => true,
            Fence::Closed { at } => !is_ruled || number.is_some_and(|number| number <= at),
            // A request without a number is a commit: it does not cover the refused changes.
            Fence::Acknowledged { at, from } => {
                !is_ruled || number.is_none_or(|number| number <= at || number >= from)
            }
        }
    }
}
