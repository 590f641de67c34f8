//! Tallocate: `fallocate(2)`.

#[cfg(test)]
mod tests;

use crate::message::target::Target;
use crate::stat::Stat;
use crate::wire::wire_struct;

wire_struct! {
    /// `Tallocate tag[2] target mode[4] offset[8] length[8]`
    pub struct Tallocate {
        /// The file.
        target: Target,
        /// The mode, as Linux's `FALLOC_FL_*`.
        mode: u32,
        /// The first byte.
        offset: u64,
        /// The number of bytes.
        length: u64,
    }
}

wire_struct! {
    /// `Rallocate tag[2] stat[opt]`
    pub struct Rallocate {
        /// The file's attributes after the change.
        stat: Option<Stat>,
    }
}
