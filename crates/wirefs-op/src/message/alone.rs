//! Ralone: the server grants or recalls the exclusive session.

#[cfg(test)]
mod tests;

use crate::wire::wire_struct;

wire_struct! {
    /// `Ralone tag[2] serial[8] alone[1]`, unsolicited, with the tag NOTAG. Sent only if [`FEATURE_ALONE`]
    /// and leases were negotiated.
    ///
    /// [`FEATURE_ALONE`]: crate::message::version::FEATURE_ALONE
    pub struct Ralone {
        /// Identifies this message, with a number from the serials of recalls. The client answers a recall of
        /// the exclusive session with a Trecalled of this serial, once it has the replies to all changes that
        /// it had reported as done to programs.
        serial: u64,
        /// True: the session is exclusive, so no other session reads or changes anything before this one was
        /// notified. False: other sessions arrived.
        alone: bool,
    }
}
