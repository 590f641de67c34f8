//! Tlink: creates a hard link.

#[cfg(test)]
mod tests;

use crate::message::target::{Place, Target};
use crate::stat::Stat;
use crate::wire::wire_struct;

wire_struct! {
    /// `Tlink tag[2] target to`
    pub struct Tlink {
        /// The existing object; may be an open file without a name.
        target: Target,
        /// The new name.
        to: Place,
    }
}

wire_struct! {
    /// `Rlink tag[2] stat[opt] dir[opt]`
    pub struct Rlink {
        /// The object's attributes after the change.
        stat: Option<Stat>,
        /// The directory's attributes after the change.
        dir: Option<Stat>,
    }
}
