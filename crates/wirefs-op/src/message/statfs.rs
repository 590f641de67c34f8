//! Tstatfs: reads the figures of a file system (`statvfs`).

#[cfg(test)]
mod tests;

use crate::message::target::Target;
use crate::stat::FsStat;
use crate::wire::wire_struct;

wire_struct! {
    /// `Tstatfs tag[2] target`
    pub struct Tstatfs {
        /// An object on the file system.
        target: Target,
    }
}

wire_struct! {
    /// `Rstatfs tag[2] fsstat`
    pub struct Rstatfs {
        /// The figures.
        figures: FsStat,
    }
}
