//! Tfind: lists a subtree, with one or several replies.

#[cfg(test)]
mod tests;

use crate::message::get::mode_bits;
use crate::message::target::Target;
use crate::wire::{Data, wire_struct};

mode_bits! {
    /// The contents of an Rfind.
    FindMode {
        /// A limit of the request or of the server ended the listing: the subtree has more.
        MORE = 4,
        /// The last reply to its request.
        LAST = 32,
    }
}

wire_struct! {
    /// `Tfind tag[2] target depth[2] entries[4] bytes[4] inline[4]`
    pub struct Tfind {
        /// The directory to start with. A valid fd may be used and stays open.
        target: Target,
        /// The number of levels below the directory to list as well; 0 lists the directory alone.
        depth: u16,
        /// The maximal number of entries over all replies.
        entries: u32,
        /// The maximal number of data bytes over all replies.
        bytes: u32,
        /// The maximal size of file contents and link targets to include, in bytes; 0 includes none.
        inline: u32,
    }
}

wire_struct! {
    /// `Rfind tag[2] mode[2] count[4] data[count]`
    ///
    /// The replies to one request arrive in the order of their data.
    pub struct Rfind {
        /// The contents of this reply.
        mode: FindMode,
        /// The records, decoded by [`FindReader`](crate::find_listing::FindReader).
        data: Data,
    }
    refused when |it| it.mode.has(FindMode::MORE) && !it.mode.has(FindMode::LAST), "MORE without LAST"
}
