//! Tcopy: copies a range of one file to another, at the server.

#[cfg(test)]
mod tests;

use crate::message::target::Target;
use crate::stat::Stat;
use crate::wire::wire_struct;

wire_struct! {
    /// `Tcopy tag[2] from from_offset[8] to to_offset[8] length[8]`
    pub struct Tcopy {
        /// The source.
        from: Target,
        /// Its first byte.
        from_offset: u64,
        /// The destination.
        to: Target,
        /// Its first byte.
        to_offset: u64,
        /// Bytes at most.
        length: u64,
    }
}

wire_struct! {
    /// `Rcopy tag[2] count[8] stat[opt]`
    pub struct Rcopy {
        /// Bytes copied.
        count: u64,
        /// The destination's attributes after it.
        stat: Option<Stat>,
    }
}
