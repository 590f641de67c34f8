//! Tnumber: numbers the changes of a session, so that a change that is sent again is not executed again.

#[cfg(test)]
mod tests;

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
