//! Tremove: removes a name.

#[cfg(test)]
mod tests;

use crate::message::target::Place;
use crate::stat::Stat;
use crate::wire::wire_struct;

wire_struct! {
    /// `Tremove tag[2] place directory[1]`
    pub struct Tremove {
        /// The name.
        place: Place,
        /// Whether it must be a directory (an empty one), or must not be one.
        directory: bool,
    }
}

wire_struct! {
    /// `Rremove tag[2] dir[opt]`
    pub struct Rremove {
        /// The directory's attributes after it.
        dir: Option<Stat>,
    }
}
