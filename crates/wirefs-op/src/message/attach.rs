//! Tattach: names the tree to work on.

#[cfg(test)]
mod tests;

use crate::path::TreePath;
use crate::stat::Stat;
use crate::wire::{Text, wire_codes, wire_struct};

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
    /// `Rattach tag[2] root[stat] uid[4] gid[4] acts_for_callers[1] read_only[1] leases[opt]`
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
        /// On what terms the server leases; `None` where it does not.
        leases: Option<Leases>,
    }
}

/// Which changes by programs at the server are noticed, and recalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Watch {
    /// None: a lease promises nothing about what programs at the server do.
    None = 0,
    /// Those in directories that are leased, one watch for each (`fanotify` or `inotify`).
    Directories = 1,
    /// Those in the whole file system (`fanotify`).
    Filesystem = 2,
}

wire_codes!(Watch: u8, "no such watch", [None, Directories, Filesystem]);

wire_struct! {
    /// On what terms a server leases.
    pub struct Leases {
        /// How long leases may be believed, in milliseconds, counted from when the last request was sent that was answered.
        term_ms: u32,
        /// Whether the server still knows what it leased to this session; else nothing is leased any more.
        kept: bool,
        /// Whether programs at the server are noticed.
        watch: Watch,
    }
}
