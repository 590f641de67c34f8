//! Tget: walk + open + stat + data in one request, answered by one or several messages.

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
            /// Nothing asked.
            pub const NONE: $name = $name(0);
            const ALL: u16 = 0 $(| $value)*;

            /// Whether all bits of `other` are set.
            pub fn has(self, other: $name) -> bool {
                self.0 & other.0 == other.0
            }

            /// Both together.
            pub const fn and(self, other: $name) -> $name {
                $name(self.0 | other.0)
            }

            /// `self` with none of the bits of `other`.
            pub const fn without(self, other: $name) -> $name {
                $name(self.0 & !other.0)
            }

            /// `self`, and `other` if `condition` holds.
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
    /// What a Tget asks for.
    GetMode {
        /// Data: a file's bytes, a directory's entries, a link's target.
        DATA = 1,
        /// Attributes.
        STAT = 2,
        /// Keep the file open and tell its fd; without it, a valid fd of the request is closed.
        MORE = 4,
        /// Take the request's turn among the session's changes instead of overtaking them.
        ORDERED = 8,
        /// Bring data only when the whole of it fits one message (a small file, a short listing); else attributes alone.
        WHOLE = 16,
        /// The target is a name in a directory: `target.id`, if present, is the *directory's* id, no fd serves for it, and
        /// a name that is not there is answered with [`GotMode::ABSENT`] instead of `ENOENT`.
        ENTRY = 32,
    }
}

mode_bits! {
    /// What an Rget holds.
    GotMode {
        /// The data field counts (an empty one is an empty read).
        DATA = 1,
        /// Not at the end of the file or listing yet.
        MORE = 4,
        /// The last reply to its request.
        LAST = 32,
        /// To ENTRY: the directory that holds the name is leased, so what the reply says of the name may be believed.
        PLACE = 64,
        /// To ENTRY: there is no such name. The reply holds nothing else.
        ABSENT = 128,
    }
}

wire_struct! {
    /// `Tget tag[2] target mode[2] nmsgs[2] offset[8] count[4]`
    ///
    /// An fd that came from a Tput with READ serves as well. Opening follows no symbolic link.
    pub struct Tget {
        /// What to get.
        target: Target,
        /// Which parts of it.
        mode: GetMode,
        /// How many replies at most; 0 is no bound.
        nmsgs: u16,
        /// First byte; for directories the `next` of the last entry known, 0 to start.
        offset: u64,
        /// Bytes of data at most, over all replies.
        count: u32,
    }
}

wire_struct! {
    /// `Rget tag[2] fd[2] mode[2] stat[opt] count[4] data[count]`
    ///
    /// The replies to one request come in the order of their data.
    pub struct Rget {
        /// The open file, or NOFD.
        fd: Fd,
        /// What this reply holds.
        mode: GotMode,
        /// Attributes, in the first reply, as asked.
        stat: Option<Stat>,
        /// File bytes, packed entries, or a link's target.
        data: Data,
    }
    refused when |it| it.mode.has(GotMode::ABSENT)
        && (it.fd != NOFD || it.mode.has(GotMode::DATA) || it.stat.is_some() || !it.data.0.is_empty()),
    "something said of a name that is absent"
}

impl Tget {
    /// Whether this may travel over a data connection: it reads a file's bytes, beside all else, and neither opens nor closes anything.
    pub fn is_bulk(&self) -> bool {
        let leaves_open = (self.target.fd != NOFD) == self.mode.has(GetMode::MORE);
        let is_other =
            [GetMode::ORDERED, GetMode::WHOLE, GetMode::ENTRY].into_iter().any(|bit| self.mode.has(bit));
        self.mode.has(GetMode::DATA) && leaves_open && !is_other
    }
}
