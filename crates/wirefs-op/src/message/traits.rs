//! Properties of requests that client and server must agree on: one row for each request.
//!
//! [`Change`] is the subset of requests that modify the tree, so that code about changes matches these alone.

#[cfg(test)]
mod tests;

use crate::LockKind;
use crate::limits::DATA_BYTES_MAX;
use crate::message::Request;
use crate::message::allocate::Tallocate;
use crate::message::copy::Tcopy;
use crate::message::get::{GetMode, Tget};
use crate::message::link::Tlink;
use crate::message::lock::{LockAction, Tlock};
use crate::message::put::{PutMode, Tput};
use crate::message::remove::Tremove;
use crate::message::rename::Trename;
use crate::message::target::NOFD;
use crate::message::xattr::{Txattr, XattrAction};

/// The order of a request within its session (`docs/PROTOCOL.md`, "Order").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Modifies the tree. Executed in the order received, even after its connection was lost, and numbered.
    Change,
    /// Modifies nothing, but runs after the changes that were received before it.
    Ordered,
    /// Runs concurrently with all other requests.
    Free,
}

/// The expected execution time of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Weight {
    /// One short reply, mostly from memory: not worth the wake-up of another thread.
    Quick,
    /// May stream, wait for a disk, or process much data.
    Long,
    /// Blocks until another owner releases a lock; needs no processor until then.
    Blocking,
}

/// The properties of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// Its order within the session.
    pub order: Order,
    /// Its expected execution time.
    pub weight: Weight,
    /// Executing it twice has the same effect as executing it once, so a client may send it again after its reply was lost.
    pub is_repeatable: bool,
    /// It may release a lock or an open file for which other requests wait.
    pub may_release: bool,
}

/// The default row: a query.
const QUERY: Traits =
    Traits { order: Order::Free, weight: Weight::Quick, is_repeatable: true, may_release: false };
/// A change that another execution would not repeat.
const CHANGE: Traits = Traits { order: Order::Change, is_repeatable: false, ..QUERY };

/// A request that modifies the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is the message of that name")]
pub enum Change<'a> {
    Put(&'a Tput),
    Remove(&'a Tremove),
    Rename(&'a Trename),
    Link(&'a Tlink),
    /// Sets or removes an extended attribute.
    Xattr(&'a Txattr),
    /// Takes or releases a lock without waiting: a release must follow the writes made under the lock.
    Lock(&'a Tlock),
    Allocate(&'a Tallocate),
    Copy(&'a Tcopy),
}

impl Request {
    /// The row of this request.
    pub fn traits(&self) -> Traits {
        match self {
            Request::Put(put) => Traits {
                weight: long_if(put.mode.has(PutMode::SYNC)),
                is_repeatable: is_put_repeatable(put),
                may_release: put.target.fd != NOFD && !put.mode.has(PutMode::MORE),
                ..CHANGE
            },
            Request::Remove(_) | Request::Rename(_) | Request::Link(_) => CHANGE,
            Request::Allocate(_) => Traits { weight: Weight::Long, is_repeatable: true, ..CHANGE },
            Request::Copy(_) => Traits { weight: Weight::Long, ..CHANGE },
            Request::Xattr(xattr) => match xattr.action {
                XattrAction::Set | XattrAction::Remove => CHANGE,
                XattrAction::Read | XattrAction::List => QUERY,
            },
            Request::Lock(lock) => lock_traits(lock),
            Request::Get(get) => Traits {
                order: if get.mode.has(GetMode::ORDERED) { Order::Ordered } else { Order::Free },
                weight: long_if(get.may_stream()),
                may_release: get.target.fd != NOFD && !get.mode.has(GetMode::MORE),
                ..QUERY
            },
            Request::Commit(_) => Traits { order: Order::Ordered, weight: Weight::Long, ..QUERY },
            Request::Find(_) => Traits { weight: Weight::Long, ..QUERY },
            Request::Recalled(_) | Request::Number(_) => Traits { is_repeatable: false, ..QUERY },
            Request::Version(_)
            | Request::Attach(_)
            | Request::Flush(_)
            | Request::Ping(_)
            | Request::Statfs(_)
            | Request::Seek(_) => QUERY,
        }
    }

    /// The order of this request within its session.
    pub fn order(&self) -> Order {
        self.traits().order
    }

    /// Returns whether this request modifies the tree.
    pub fn is_change(&self) -> bool {
        self.order() == Order::Change
    }

    /// This request as a change; `None` if it modifies nothing.
    pub fn change(&self) -> Option<Change<'_>> {
        let change = match self {
            Request::Put(put) => Change::Put(put),
            Request::Remove(remove) => Change::Remove(remove),
            Request::Rename(rename) => Change::Rename(rename),
            Request::Link(link) => Change::Link(link),
            Request::Xattr(xattr) => Change::Xattr(xattr),
            Request::Lock(lock) => Change::Lock(lock),
            Request::Allocate(allocate) => Change::Allocate(allocate),
            Request::Copy(copy) => Change::Copy(copy),
            _ => return None,
        };
        self.is_change().then_some(change)
    }
}

impl Tget {
    /// Returns whether the reply may take several messages.
    pub fn may_stream(&self) -> bool {
        self.mode.has(GetMode::DATA)
            && !self.mode.has(GetMode::WHOLE)
            && self.nmsgs != 1
            && self.count as usize > DATA_BYTES_MAX
    }
}

fn long_if(is_long: bool) -> Weight {
    if is_long { Weight::Long } else { Weight::Quick }
}

/// A creation fails the second time, an append appends twice, and a barrier may have lost the data that it was to order.
fn is_put_repeatable(put: &Tput) -> bool {
    let is_once =
        [PutMode::CREATE, PutMode::APPEND, PutMode::REMOVE].into_iter().any(|mode| put.mode.has(mode));
    !is_once && !put.is_barrier()
}

/// A test and a blocking lock modify nothing, but must not overtake a release or the removal of the file's name.
fn lock_traits(lock: &Tlock) -> Traits {
    let (order, weight) = match (lock.action, lock.range.kind) {
        (LockAction::Set, _) => (Order::Change, Weight::Quick),
        (LockAction::Wait, LockKind::Read | LockKind::Write) => (Order::Ordered, Weight::Blocking),
        (LockAction::Wait, LockKind::Unlock) | (LockAction::Test, _) => (Order::Ordered, Weight::Quick),
    };
    Traits { order, weight, may_release: lock.range.kind != LockKind::Write, ..QUERY }
}
