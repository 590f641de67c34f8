//! Which requests take turns, and which are quick.

use wirefs_op::LockKind;
use wirefs_op::Request;
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::message::lock::LockAction;
use wirefs_op::message::put::PutMode;

/// How a request stands to the others of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Changes the tree: takes its turn, and is carried out even when nobody waits for the answer any more.
    Change,
    /// Changes nothing, but takes its turn.
    Turn,
    /// Runs beside all others.
    Free,
}

impl Order {
    /// The order that a request keeps.
    pub fn of(request: &Request) -> Order {
        match request {
            change if change.is_change() => Order::Change,
            Request::Commit(_) => Order::Turn,
            Request::Get(get) if get.mode.has(GetMode::ORDERED) => Order::Turn,
            // A test and a waiting lock must not overtake a release, nor a removal of the file's name.
            Request::Lock(_) => Order::Turn,
            _ => Order::Free,
        }
    }
}

/// How long a request may take, as far as its kind tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Weight {
    /// One short reply from what is mostly in memory: not worth waking a thread for.
    Quick,
    /// May stream, wait for a disk or work on much data.
    Long,
    /// Waits until somebody else gives something up; until then it needs no processor.
    Waits,
}

impl Weight {
    /// The weight of a request.
    pub fn of(request: &Request) -> Weight {
        let long_if = |long: bool| if long { Weight::Long } else { Weight::Quick };
        match request {
            Request::Get(get) => long_if(streams(get)),
            Request::Put(put) => long_if(put.mode.has(PutMode::SYNC)),
            Request::Lock(lock) => match (lock.action, lock.range.kind) {
                (LockAction::Wait, LockKind::Read | LockKind::Write) => Weight::Waits,
                (LockAction::Wait, LockKind::Unlock) | (LockAction::Test | LockAction::Set, _) => {
                    Weight::Quick
                }
            },
            Request::Allocate(_) | Request::Copy(_) | Request::Commit(_) | Request::Find(_) => Weight::Long,
            Request::Remove(_)
            | Request::Rename(_)
            | Request::Link(_)
            | Request::Xattr(_)
            | Request::Statfs(_)
            | Request::Seek(_)
            | Request::Version(_)
            | Request::Attach(_)
            | Request::Flush(_)
            | Request::Ping(_)
            | Request::Recalled(_)
            | Request::Number(_) => Weight::Quick,
        }
    }
}

/// Whether the answer may take several messages.
pub fn streams(get: &Tget) -> bool {
    get.mode.has(GetMode::DATA)
        && !get.mode.has(GetMode::WHOLE)
        && get.nmsgs != 1
        && get.count as usize > DATA_BYTES_MAX
}
