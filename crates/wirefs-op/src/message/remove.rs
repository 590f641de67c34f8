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
        /// True if the object must be an empty directory; false if it must not be a directory.
        directory: bool,
    }
}

wire_struct! {
    /// `Rremove tag[2] dir[opt]`
    pub struct Rremove {
        /// The directory's attributes after the change.
        dir: Option<Stat>,
    }
}
