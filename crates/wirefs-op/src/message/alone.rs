//! Ralone: the server says whether other sessions are there.

#[cfg(test)]
mod tests;

use crate::wire::wire_struct;

wire_struct! {
    /// `Ralone tag[2] serial[8] alone[1]`, with the tag NOTAG and unasked. Only where [`FEATURE_ALONE`] was agreed on, and
    /// leases are.
    ///
    /// [`FEATURE_ALONE`]: crate::message::version::FEATURE_ALONE
    pub struct Ralone {
        /// Names this message; of the numbers that recalls have. Of one that says that others come, the Trecalled repeats it
        /// that answers it once the client has the replies to all changes that it has told a program about.
        serial: u64,
        /// Whether no other session sees or changes anything before the client was told.
        alone: bool,
    }
}
