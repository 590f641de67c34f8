//! The messages: one file per operation, request and reply beside each other.
//!
//! Type codes are even for requests and the next odd number for replies, as in 9P, whose numbers are kept where the
//! operation is the same.

pub mod allocate;
pub mod alone;
pub mod attach;
pub mod commit;
pub mod copy;
pub mod error;
pub mod find;
pub mod flush;
pub mod get;
pub mod limited;
pub mod link;
pub mod lock;
pub mod number;
pub mod ping;
pub mod put;
pub mod recall;
pub mod remove;
pub mod rename;
pub mod seek;
pub mod statfs;
pub mod target;
pub mod traits;
pub mod version;
pub mod xattr;

#[cfg(test)]
pub(crate) mod tests;

use crate::Frame;
use crate::wire::{Malformed, Reader, Wire, Writer};
use bytes::Bytes;

/// Names one outstanding request of a session; the reply carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub u16);

/// The tag of messages that belong to no request: Tversion and a server's complaint about the whole conversation.
pub const NOTAG: Tag = Tag(u16::MAX);

macro_rules! messages {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $code:literal $variant:ident($type:ty),)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$vdoc])* $variant($type),)* }

        impl $name {
            /// The type byte.
            pub fn code(&self) -> u8 {
                match self { $($name::$variant(_) => $code,)* }
            }

            /// The name of the message, without its T or R.
            pub fn name(&self) -> &'static str {
                match self { $($name::$variant(_) => stringify!($variant),)* }
            }

            /// Encodes it. The data is shared, not copied.
            pub fn encode(&self, tag: Tag) -> Frame {
                let mut writer = Writer::message(self.code(), tag.0);
                match self { $($name::$variant(body) => body.put(&mut writer),)* }
                writer.finish()
            }

            /// Decodes a message body (what follows the size word). Data is shared with `body`, not copied.
            ///
            /// # Errors
            /// Not such a message, or beyond a limit; the peer is to blame.
            pub fn decode(body: Bytes) -> Result<(Tag, $name), Malformed> {
                let mut reader = Reader::new(body);
                let code = u8::take(&mut reader)?;
                let tag = Tag(u16::take(&mut reader)?);
                let message = match code {
                    $($code => $name::$variant(<$type>::take(&mut reader)?),)*
                    _ => return Err(reader.malformed("no such message type")),
                };
                reader.end()?;
                Ok((tag, message))
            }
        }
    };
}

messages! {
    /// What a client asks.
    Request {
        /// Agrees on the protocol; the first message of a connection.
        100 Version(version::Tversion),
        /// Names the tree to work on.
        104 Attach(attach::Tattach),
        /// Gives up on an earlier request.
        108 Flush(flush::Tflush),
        /// Asks for a sign of life.
        110 Ping(ping::Tping),
        /// Removes a name.
        122 Remove(remove::Tremove),
        /// Walks, opens, reads attributes, data, listings, link targets.
        130 Get(get::Tget),
        /// Creates, opens, writes, changes attributes.
        132 Put(put::Tput),
        /// Renames.
        134 Rename(rename::Trename),
        /// Makes a hard link.
        136 Link(link::Tlink),
        /// Reads and changes extended attributes.
        138 Xattr(xattr::Txattr),
        /// Asks for the file system's figures.
        140 Statfs(statfs::Tstatfs),
        /// Takes, tests and releases locks.
        142 Lock(lock::Tlock),
        /// Allocates, punches, zeroes.
        144 Allocate(allocate::Tallocate),
        /// Copies a range at the server.
        146 Copy(copy::Tcopy),
        /// Finds data and holes.
        148 Seek(seek::Tseek),
        /// Waits for stable storage.
        150 Commit(commit::Tcommit),
        /// Lists a subtree.
        152 Find(find::Tfind),
        /// Says that what was recalled is forgotten; never answered.
        160 Recalled(recall::Trecalled),
        /// Says which number the next change has; never answered.
        162 Number(number::Tnumber),
    }
}

messages! {
    /// What a server answers.
    Reply {
        /// To Tversion.
        101 Version(version::Rversion),
        /// To Tattach.
        105 Attach(attach::Rattach),
        /// To any request: it failed.
        107 Error(error::Rerror),
        /// To Tflush.
        109 Flush(flush::Rflush),
        /// To Tping.
        111 Ping(ping::Rping),
        /// To Tremove.
        123 Remove(remove::Rremove),
        /// To Tget; several for one request.
        131 Get(get::Rget),
        /// To Tput.
        133 Put(put::Rput),
        /// To Trename.
        135 Rename(rename::Rrename),
        /// To Tlink.
        137 Link(link::Rlink),
        /// To Txattr.
        139 Xattr(xattr::Rxattr),
        /// To Tstatfs.
        141 Statfs(statfs::Rstatfs),
        /// To Tlock.
        143 Lock(lock::Rlock),
        /// To Tallocate.
        145 Allocate(allocate::Rallocate),
        /// To Tcopy.
        147 Copy(copy::Rcopy),
        /// To Tseek.
        149 Seek(seek::Rseek),
        /// To Tcommit.
        151 Commit(commit::Rcommit),
        /// To Tfind; several for one request.
        153 Find(find::Rfind),
        /// Unasked: takes leases back.
        161 Recall(recall::Rrecall),
        /// Unasked: whether other sessions are there.
        163 Alone(alone::Ralone),
        /// Unasked: another connection would bring more.
        165 Limited(limited::Rlimited),
    }
}
