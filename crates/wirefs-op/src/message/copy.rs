//! Tcopy: copies a range of one file to another, on the server.

#[cfg(test)]
mod tests;

use crate::message::target::Target;
use crate::stat::Stat;
use crate::wire::wire_struct;

wire_struct! {
    /// `Tcopy tag[2] from from_offset[8] to to_offset[8] length[8]`
    pub struct Tcopy {
        /// The source file.
        from: Target,
        /// The first byte in the source.
        from_offset: u64,
        /// The destination file.
        to: Target,
        /// The first byte in the destination.
        to_offset: u64,
        /// The maximal number of bytes.
        length: u64,
    }
}

wire_struct! {
    /// `Rcopy tag[2] count[8] stat[opt]`
    pub struct Rcopy {
        /// The number of bytes copied.
        count: u64,
        /// The destination's attributes after the change.
        stat: Option<Stat>,
    }
}
