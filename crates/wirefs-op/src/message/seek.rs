//! Tseek: finds data and holes.

#[cfg(test)]
mod tests;

use crate::message::target::Target;
use crate::wire::wire_struct;

wire_struct! {
    /// `Tseek tag[2] target offset[8] hole[1]`
    pub struct Tseek {
        /// The file.
        target: Target,
        /// The offset to search from.
        offset: u64,
        /// True: searches for the next hole (`SEEK_HOLE`). False: for the next data (`SEEK_DATA`).
        hole: bool,
    }
}

wire_struct! {
    /// `Rseek tag[2] offset[8]`
    pub struct Rseek {
        /// The offset found.
        offset: u64,
    }
}
