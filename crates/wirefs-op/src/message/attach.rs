//! Tattach: selects the tree.

#[cfg(test)]
mod tests;

use crate::path::TreePath;
use crate::stat::Stat;
use crate::wire::{Text, wire_codes, wire_struct};

wire_struct! {
    /// `Tattach tag[2] uname[s] path[s]`
    pub struct Tattach {
        /// The user's name on the client, for logs only; grants no rights.
        uname: Text,
        /// The directory below the export to use as the root.
        path: TreePath,
    }
}

wire_struct! {
    /// `Rattach tag[2] root[stat] uid[4] gid[4] acts_for_callers[1] read_only[1] leases[opt]`
    pub struct Rattach {
        /// The root's attributes.
        root: Stat,
        /// The id of the user that the server runs as.
        uid: u32,
        /// The id of that user's group.
        gid: u32,
        /// True if the server may act on behalf of other users, so that it uses `Cred`.
        acts_for_callers: bool,
        /// True if the server rejects changes.
        read_only: bool,
        /// The terms of leases; `None` if the server grants none.
        leases: Option<Leases>,
    }
}

/// The external changes that the server detects, so that it recalls leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Watch {
    /// None: leases do not cover external changes.
    None = 0,
    /// Changes in leased directories, with one watch for each (`fanotify` or `inotify`).
    Directories = 1,
    /// Changes in the whole file system (`fanotify`).
    Filesystem = 2,
}

wire_codes!(Watch: u8, "no such watch", [None, Directories, Filesystem]);

wire_struct! {
    /// The terms of a server's leases.
    pub struct Leases {
        /// The validity of leases in milliseconds, counted from the sending of the last request that was
        /// answered.
        term_ms: u32,
        /// True if the server retains its leases to this session; false: they are void.
        kept: bool,
        /// The external changes that the server detects.
        watch: Watch,
    }
}
