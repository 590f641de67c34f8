//! Tattach: names the tree to work on.

#[cfg(test)]
mod tests;

use crate::path::TreePath;
use crate::stat::Stat;
use crate::wire::{Text, wire_struct};

wire_struct! {
    /// `Tattach tag[2] uname[s] path[s]`
    pub struct Tattach {
        /// The user's name at the client, for people reading logs; it gives no rights.
        uname: Text,
        /// The directory below the export to take as the root.
        path: TreePath,
    }
}

wire_struct! {
    /// `Rattach tag[2] root[stat] uid[4] gid[4] acts_for_callers[1] read_only[1]`
    pub struct Rattach {
        /// The root's attributes.
        root: Stat,
        /// The user that the server runs as.
        uid: u32,
        /// Its group.
        gid: u32,
        /// Whether the server may act on behalf of other users, so that `Cred` counts.
        acts_for_callers: bool,
        /// Whether changes are refused.
        read_only: bool,
    }
}
