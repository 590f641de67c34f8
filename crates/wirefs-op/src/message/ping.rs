//! Tping: checks that the server is alive, and measures the RTT.

#[cfg(test)]
mod tests;

use crate::wire::wire_struct;

wire_struct! {
    /// `Tping tag[2]`
    pub struct Tping {}
}

wire_struct! {
    /// `Rping tag[2]`: sent immediately, before queued replies.
    pub struct Rping {}
}
