//! Tping: a sign of life, and the round trip's measure.

#[cfg(test)]
mod tests;

use crate::wire::wire_struct;

wire_struct! {
    /// `Tping tag[2]`
    pub struct Tping {}
}

wire_struct! {
    /// `Rping tag[2]`: sent at once, before anything that waits.
    pub struct Rping {}
}
