//! Tnumber: numbers the changes of a session, so that a change that is sent again is not executed again.

#[cfg(test)]
mod tests;

use crate::message::Request;
use crate::message::lock::LockAction;
use crate::message::xattr::XattrAction;
use crate::wire::wire_struct;

wire_struct! {
    /// `Tnumber tag[2] number[8] answered[8]`, with the tag NOTAG; has no reply.
    pub struct Tnumber {
        /// The number of the next change on this connection; later changes count up from it.
        number: u64,
        /// All changes with lower numbers were answered, or the client no longer needs their replies. At most
        /// `number`.
        answered: u64,
    }
}

impl Request {
    /// Returns true if the request is a change. Changes of a session are numbered, and executed in order once
    /// received.
    pub fn is_change(&self) -> bool {
        match self {
            Request::Put(_)
            | Request::Remove(_)
            | Request::Rename(_)
            | Request::Link(_)
            | Request::Allocate(_)
            | Request::Copy(_) => true,
            Request::Xattr(xattr) => matches!(xattr.action, XattrAction::Set | XattrAction::Remove),
            // A release must follow the writes under the lock, and precede the owner's next lock.
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
