//! Rlimited: the server reports that another connection would increase the throughput.

#[cfg(test)]
mod tests;

use crate::wire::wire_struct;

wire_struct! {
    /// `Rlimited tag[2]`, unsolicited, with the tag NOTAG, on the session's first connection. The socket
    /// buffers of one of the session's connections are smaller than the bandwidth-delay product, so the
    /// server cannot fill the path. Sent only if [`FEATURE_DATA`] was negotiated; a client may ignore it.
    ///
    /// [`FEATURE_DATA`]: crate::message::version::FEATURE_DATA
    pub struct Rlimited {}
}
