//! Trename: renames, like `renameat2`.

#[cfg(test)]
mod tests;

use crate::message::target::Place;
use crate::stat::Stat;
use crate::wire::wire_struct;

/// Fails if the new name exists (`RENAME_NOREPLACE`).
pub const NOREPLACE: u32 = 1;
/// Exchanges the two names (`RENAME_EXCHANGE`).
pub const EXCHANGE: u32 = 2;

wire_struct! {
    /// `Trename tag[2] from to flags[4]`
    pub struct Trename {
        /// The old name.
        from: Place,
        /// The new name.
        to: Place,
        /// [`NOREPLACE`], [`EXCHANGE`], or 0.
        flags: u32,
    }
}

wire_struct! {
    /// `Rrename tag[2] stat[opt] from_dir[opt] to_dir[opt]`
    pub struct Rrename {
        /// The moved object's attributes after the change.
        stat: Option<Stat>,
        /// The old directory's attributes after the change.
        from_dir: Option<Stat>,
        /// The new directory's attributes after the change.
        to_dir: Option<Stat>,
    }
}
