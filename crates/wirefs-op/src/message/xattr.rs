//! Txattr: extended attributes, POSIX ACLs among them.

#[cfg(test)]
mod tests;

use crate::limits::XATTR_BYTES_MAX;
use crate::message::target::Target;
use crate::stat::Stat;
use crate::wire::{Data, Text, wire_codes, wire_struct};

/// The action on extended attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum XattrAction {
    /// Reads the value of `name`.
    Read = 0,
    /// Lists all names, each terminated by NUL.
    List = 1,
    /// Sets `name` to the data.
    Set = 2,
    /// Removes `name`.
    Remove = 3,
}

wire_codes!(XattrAction: u8, "no such xattr action", [Read, List, Set, Remove]);

wire_struct! {
    /// `Txattr tag[2] target action[1] name[s] flags[4] kill_sgid[1] count[4] data[count]`
    pub struct Txattr {
        /// The object.
        target: Target,
        /// The action.
        action: XattrAction,
        /// The name of the attribute.
        name: Text,
        /// For Set: the flags of `setxattr(2)`.
        flags: u32,
        /// For Set of an ACL: clears the set-group-id bit.
        kill_sgid: bool,
        /// For Set: the value.
        value: Data,
    }
    refused when |it| it.value.0.len() > XATTR_BYTES_MAX, "an attribute over its limit"
}

wire_struct! {
    /// `Rxattr tag[2] stat[opt] count[4] data[count]`
    pub struct Rxattr {
        /// The attributes after a change.
        stat: Option<Stat>,
        /// The value or the names.
        value: Data,
    }
    refused when |it| it.value.0.len() > XATTR_BYTES_MAX, "an attribute over its limit"
}
