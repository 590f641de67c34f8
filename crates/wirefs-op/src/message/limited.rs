//! Rlimited: the server says that another connection would bring more.

#[cfg(test)]
mod tests;

use crate::wire::wire_struct;

wire_struct! {
    /// `Rlimited tag[2]`, with the tag NOTAG, unasked, over the session's first connection: the socket buffers of one of the session's
    /// connections hold less than the wire, so that the server cannot send what the wire would take. Only where [`FEATURE_DATA`] was
    /// agreed on; a client may do nothing about it.
    ///
    /// [`FEATURE_DATA`]: crate::message::version::FEATURE_DATA
    pub struct Rlimited {}
}
