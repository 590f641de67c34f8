//! Tget: walk, open, stat and read in one request, with one or several replies.

#[cfg(test)]
mod tests;

use crate::message::target::{Fd, NOFD, Target};
use crate::stat::Stat;
use crate::wire::{Data, wire_struct};

macro_rules! mode_bits {
    ($(#[$doc:meta])* $name:ident { $($(#[$bdoc:meta])* $bit:ident = $value:expr,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name(pub u16);

        impl $name {
            $($(#[$bdoc])* pub const $bit: $name = $name($value);)*
            /// No bits.
            pub const NONE: $name = $name(0);
            const ALL: u16 = 0 $(| $value)*;

            /// Returns true if all bits of `other` are set.
            pub fn has(self, other: $name) -> bool {
                self.0 & other.0 == other.0
            }

            /// Returns the union of both.
            pub const fn and(self, other: $name) -> $name {
                $name(self.0 | other.0)
            }

            /// Returns `self` without the bits of `other`.
            pub const fn without(self, other: $name) -> $name {
                $name(self.0 & !other.0)
            }

            /// Returns `self`, with the bits of `other` if `condition` holds.
            pub fn and_if(self, condition: bool, other: $name) -> $name {
                if condition { self.and(other) } else { self }
            }
        }

        impl $crate::wire::Wire for $name {
            fn put(&self, writer: &mut $crate::wire::Writer) {
                self.0.put(writer);
            }
            fn take(reader: &mut $crate::wire::Reader) -> Result<Self, $crate::wire::Malformed> {
                let bits = u16::take(reader)?;
                if bits & !$name::ALL != 0 {
                    return Err(reader.malformed("unknown mode bits"));
                }
                Ok($name(bits))
            }
        }
    };
}
pub(crate) use mode_bits;

mode_bits! {
    /// The parts that a Tget requests.
    GetMode {
        /// Data: file contents, directory entries, or a link target.
        DATA = 1,
        /// Attributes.
        STAT = 2,
        /// Keeps the file open and returns its fd; otherwise, a valid fd of the request is closed.
        MORE = 4,
        /// Executes the request in order with the session's changes, instead of before them.
        ORDERED = 8,
        /// Returns data only if all of it fits into one message (a small file, a short listing), otherwise
        /// attributes alone.
        WHOLE = 16,
        /// The target is a name in a directory: `target.id`, if present, is the *directory's* id, and the fd
        /// is not used. An absent name is answered with [`GotMode::ABSENT`] instead of `ENOENT`.
        ENTRY = 32,
    }
}

mode_bits! {
    /// The contents of an Rget.
    GotMode {
        /// The data field is valid (an empty one is an empty read).
        DATA = 1,
        /// The end of the file or listing is not reached.
        MORE = 4,
        /// The last reply to its request.
        LAST = 32,
        /// To ENTRY: the directory is leased, so the entry may be cached.
        PLACE = 64,
        /// To ENTRY: the name does not exist. The reply has no other contents.
        ABSENT = 128,
    }
}

wire_struct! {
    /// `Tget tag[2] target mode[2] nmsgs[2] offset[8] count[4]`
    ///
    /// An fd from a Tput with READ may be used too. Opening does not follow symbolic links.
    pub struct Tget {
        /// The object.
        target: Target,
        /// The requested parts.
        mode: GetMode,
        /// The maximal number of replies; 0 for no limit.
        nmsgs: u16,
        /// The first byte; for directories the `next` of the last entry received, 0 to start.
        offset: u64,
        /// The maximal number of data bytes over all replies.
        count: u32,
    }
}

wire_struct! {
    /// `Rget tag[2] fd[2] mode[2] stat[opt] count[4] data[count]`
    ///
    /// The replies to one request arrive in the order of their data.
    pub struct Rget {
        /// The open file, or NOFD.
        fd: Fd,
        /// The contents of this reply.
        mode: GotMode,
        /// The attributes, in the first reply, if requested.
        stat: Option<Stat>,
        /// File contents, packed entries, or a link target.
        data: Data,
    }
    refused when |it| it.mode.has(GotMode::ABSENT)
        && (it.fd != NOFD || it.mode.has(GotMode::DATA) || it.stat.is_some() || !it.data.0.is_empty()),
    "data about an absent name"
}

impl Tget {
    /// Returns true if the request may use a data connection: it reads file contents, in no order with other
    /// requests, and opens or closes nothing.
    pub fn is_bulk(&self) -> bool {
        let leaves_open = (self.target.fd != NOFD) == self.mode.has(GetMode::MORE);
        let is_other =
            [GetMode::ORDERED, GetMode::WHOLE, GetMode::ENTRY].into_iter().any(|bit| self.mode.has(bit));
        self.mode.has(GetMode::DATA) && leaves_open && !is_other
    }
}
