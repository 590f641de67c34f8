//! The messages: one file per operation, with its request and reply.
//!
//! Type codes are even for requests; the reply has the next odd number, as in 9P. Operations that 9P has too
//! keep its numbers.

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
pub mod times;
pub mod traits;
pub mod version;
pub mod xattr;

#[cfg(test)]
pub(crate) mod tests;

use crate::Frame;
use crate::wire::{Malformed, Reader, Wire, Writer};
use bytes::Bytes;

/// Identifies an outstanding request of a session; the reply repeats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub u16);

/// The tag of messages that belong to no request: Tversion, unsolicited messages, and an error of the whole
/// connection.
pub const NOTAG: Tag = Tag(u16::MAX);

macro_rules! messages {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $code:literal $variant:ident($type:ty),)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$vdoc])* $variant($type),)* }

        impl $name {
            /// Returns the type byte.
            pub fn code(&self) -> u8 {
                match self { $($name::$variant(_) => $code,)* }
            }

            /// Returns the name of the message, without its T or R.
            pub fn name(&self) -> &'static str {
                match self { $($name::$variant(_) => stringify!($variant),)* }
            }

            /// Encodes the message. Its data is shared, not copied.
            pub fn encode(&self, tag: Tag) -> Frame {
                let mut writer = Writer::message(self.code(), tag.0);
                match self { $($name::$variant(body) => body.put(&mut writer),)* }
                writer.finish()
            }

            /// Decodes a message without its size word. Data is shared with `body`, not copied.
            ///
            /// # Errors
            /// Fails if the bytes are not a valid message or exceed a limit, which is the peer's fault.
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
    /// A request, from client to server.
    Request {
        /// Negotiates the protocol; the first message of a connection.
        100 Version(version::Tversion),
        /// Selects the tree.
        104 Attach(attach::Tattach),
        /// Cancels an earlier request.
        108 Flush(flush::Tflush),
        /// Checks that the server is alive.
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
        /// Reads the figures of the file system (`statvfs`).
        140 Statfs(statfs::Tstatfs),
        /// Takes, tests and releases locks.
        142 Lock(lock::Tlock),
        /// Allocates space, punches holes, zeroes ranges.
        144 Allocate(allocate::Tallocate),
        /// Copies a range on the server.
        146 Copy(copy::Tcopy),
        /// Finds data and holes.
        148 Seek(seek::Tseek),
        /// Waits for stable storage.
        150 Commit(commit::Tcommit),
        /// Lists a subtree.
        152 Find(find::Tfind),
        /// Reports that recalled leases are no longer used; has no reply.
        160 Recalled(recall::Trecalled),
        /// Sets the number of the next change; has no reply.
        162 Number(number::Tnumber),
    }
}

messages! {
    /// A reply, from server to client.
    Reply {
        /// Replies to Tversion.
        101 Version(version::Rversion),
        /// Replies to Tattach.
        105 Attach(attach::Rattach),
        /// Replies to any request that failed.
        107 Error(error::Rerror),
        /// Replies to Tflush.
        109 Flush(flush::Rflush),
        /// Replies to Tping.
        111 Ping(ping::Rping),
        /// Replies to Tremove.
        123 Remove(remove::Rremove),
        /// Replies to Tget; several for one request.
        131 Get(get::Rget),
        /// Replies to Tput.
        133 Put(put::Rput),
        /// Replies to Trename.
        135 Rename(rename::Rrename),
        /// Replies to Tlink.
        137 Link(link::Rlink),
        /// Replies to Txattr.
        139 Xattr(xattr::Rxattr),
        /// Replies to Tstatfs.
        141 Statfs(statfs::Rstatfs),
        /// Replies to Tlock.
        143 Lock(lock::Rlock),
        /// Replies to Tallocate.
        145 Allocate(allocate::Rallocate),
        /// Replies to Tcopy.
        147 Copy(copy::Rcopy),
        /// Replies to Tseek.
        149 Seek(seek::Rseek),
        /// Replies to Tcommit.
        151 Commit(commit::Rcommit),
        /// Replies to Tfind; several for one request.
        153 Find(find::Rfind),
        /// Unsolicited: recalls leases.
        161 Recall(recall::Rrecall),
        /// Unsolicited: grants or recalls the exclusive session.
        163 Alone(alone::Ralone),
        /// Unsolicited: another connection would increase the throughput.
        165 Limited(limited::Rlimited),
        /// Precedes the last reply to a request: the times that it took at the server.
        167 Times(times::Rtimes),
    }
}
