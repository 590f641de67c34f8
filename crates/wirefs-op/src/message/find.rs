//! Tfind: the listings of a subtree, answered by one or several messages.

#[cfg(test)]
mod tests;

use crate::message::get::mode_bits;
use crate::message::target::Target;
use crate::wire::{Data, wire_struct};

mode_bits! {
    /// What an Rfind holds.
    FindMode {
        /// A bound of the request, or one of the server's own, ended it: more could be told.
        MORE = 4,
        /// The last reply to its request.
        LAST = 32,
    }
}

wire_struct! {
    /// `Tfind tag[2] target depth[2] entries[4] bytes[4] inline[4]`
    pub struct Tfind {
        /// The directory to begin with. A valid fd serves and stays open.
        target: Target,
        /// Levels below it to list as well; 0 is its own listing alone.
        depth: u16,
        /// Entries at most, over all replies.
        entries: u32,
        /// Bytes of data at most, over all replies.
        bytes: u32,
        /// Contents of regular files, and targets of links, of at most so many bytes come along; 0: none.
        inline: u32,
    }
}

wire_struct! {
    /// `Rfind tag[2] mode[2] count[4] data[count]`
    ///
    /// The replies to one request come in the order of their data.
    pub struct Rfind {
        /// What this reply holds.
        mode: FindMode,
        /// Records, as [`FindReader`](crate::find_listing::FindReader) unpacks them.
        data: Data,
    }
    refused when |it| it.mode.has(FindMode::MORE) && !it.mode.has(FindMode::LAST), "MORE without LAST"
}
