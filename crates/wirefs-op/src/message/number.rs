//! Tnumber: which number the next change has, so that one that is sent again is not carried out again.

#[cfg(test)]
mod tests;

use crate::message::Request;
use crate::message::lock::LockAction;
use crate::message::xattr::XattrAction;
use crate::wire::wire_struct;

wire_struct! {
    /// `Tnumber tag[2] number[8] answered[8]`, with the tag NOTAG; never answered.
    pub struct Tnumber {
        /// The number of the next change on this connection; those behind it count on from there.
        number: u64,
        /// The replies to all changes with lower numbers than this have come, or will not be asked for again. At most `number`.
        answered: u64,
    }
}

impl Request {
    /// Whether this is a change: changes of a session take turns, are carried out once received, and are numbered.
    pub fn is_change(&self) -> bool {
        match self {
            Request::Put(_)
            | Request::Remove(_)
            | Request::Rename(_)
            | Request::Link(_)
            | Request::Allocate(_)
            | Request::Copy(_) => true,
            Request::Xattr(xattr) => matches!(xattr.action, XattrAction::Set | XattrAction::Remove),
            // A release must be behind what was written under the lock, and before what the same owner takes next.
            Request::Lock(lock) => lock.action == LockAction::Set,
            Request::Version(_)
            | Request::Attach(_)
            | Request::Flush(_)
            | Request::Ping(_)
            | Request::Get(_)
            | Request::Statfs(_)
            | Request::Seek(_)
            | Request::Commit(_)
            | Request::Find(_)
            | Request::Recalled(_)
            | Request::Number(_) => false,
        }
    }
}
