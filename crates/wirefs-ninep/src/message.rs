//! The messages of 9P2000 and 9P2000.L, each with its number and its fields in order.

#[cfg(test)]
mod tests;

use crate::attributes::{Attributes, SetAttributes, fields_in_order};
use crate::plan_stat::SizedStat;
use crate::qid::Qid;
use crate::text::{Few, NineString, Tail};
use bytes::Bytes;
use wirefs_op::wire::{Data, Malformed, Reader, Wire, Writer};
use wirefs_op::{Frame, Tag};

/// A client's number for a file; it chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fid(pub u32);

/// The fid of messages that mean none.
pub const NOFID: Fid = Fid(u32::MAX);

impl Wire for Fid {
    fn put(&self, writer: &mut Writer) {
        self.0.put(writer);
    }
    fn take(reader: &mut Reader) -> Result<Self, Malformed> {
        u32::take(reader).map(Fid)
    }
}

/// `type[1] start[8] length[8] proc_id[4] client_id[s]`: a lock, held or wanted. A length of 0 reaches to the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NineLock {
    /// Read 0, write 1, none 2.
    pub kind: u8,
    /// The first byte.
    pub start: u64,
    /// The number of bytes; 0: to the end.
    pub length: u64,
    /// The process, as the client numbers it.
    pub process: u32,
    /// The client.
    pub client: NineString,
}
fields_in_order!(NineLock { kind, start, length, process, client });

/// The figures of Rstatfs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NineFsStat {
    /// The type of the file system, as in `statfs(2)`.
    pub kind: u32,
    /// Size of a block in bytes.
    pub block_bytes: u32,
    /// All blocks.
    pub blocks: u64,
    /// Free blocks.
    pub blocks_free: u64,
    /// Blocks free for an ordinary user.
    pub blocks_available: u64,
    /// All inodes.
    pub files: u64,
    /// Free inodes.
    pub files_free: u64,
    /// The file system's number.
    pub fsid: u64,
    /// The longest name in bytes.
    pub name_bytes_max: u32,
}
fields_in_order!(NineFsStat {
    kind,
    block_bytes,
    blocks,
    blocks_free,
    blocks_available,
    files,
    files_free,
    fsid,
    name_bytes_max
});

macro_rules! messages {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$vdoc:meta])* $code:literal $variant:ident { $($field:ident : $type:ty),* },)*
    }) => {
        $(#[$doc])*
        #[expect(missing_docs, reason = "the fields are those of the message that the variant documents")]
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$vdoc])* $variant { $($field: $type),* },)* }

        impl $name {
            /// Returns the type byte.
            pub fn code(&self) -> u8 {
                match self { $($name::$variant { .. } => $code,)* }
            }

            /// Encodes the message. Its data is shared, not copied.
            pub fn encode(&self, tag: Tag) -> Frame {
                let mut writer = Writer::message(self.code(), tag.0);
                match self { $($name::$variant { $($field),* } => { $($field.put(&mut writer);)* })* }
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
                    $($code => $name::$variant { $($field: Wire::take(&mut reader)?),* },)*
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
    Tmessage {
        /// Reads the figures of the file system (L).
        8 Statfs { fid: Fid },
        /// Opens with flags of Linux (L).
        12 Lopen { fid: Fid, flags: u32 },
        /// Creates and opens a file (L).
        14 Lcreate { fid: Fid, name: NineString, flags: u32, mode: u32, gid: u32 },
        /// Makes a symbolic link (L).
        16 Symlink { dir: Fid, name: NineString, target: NineString, gid: u32 },
        /// Makes a device node, pipe or socket (L).
        18 Mknod { dir: Fid, name: NineString, mode: u32, major: u32, minor: u32, gid: u32 },
        /// Renames the file of a fid (L).
        20 Rename { fid: Fid, dir: Fid, name: NineString },
        /// Reads a symbolic link (L).
        22 Readlink { fid: Fid },
        /// Reads attributes (L).
        24 Getattr { fid: Fid, mask: u64 },
        /// Changes attributes (L).
        26 Setattr { fid: Fid, set: SetAttributes },
        /// Makes a fid of an extended attribute, or of the list of them (L).
        30 Xattrwalk { fid: Fid, newfid: Fid, name: NineString },
        /// Makes the fid one of an extended attribute that is written next (L).
        32 Xattrcreate { fid: Fid, name: NineString, size: u64, flags: u32 },
        /// Lists a directory (L).
        40 Readdir { fid: Fid, offset: u64, count: u32 },
        /// Waits for stable storage (L); the tail says "data alone" where it is 1.
        50 Fsync { fid: Fid, data_only: Tail },
        /// Takes or releases a lock (L).
        52 Lock { fid: Fid, kind: u8, flags: u32, start: u64, length: u64, process: u32, client: NineString },
        /// Finds the lock in the way (L).
        54 Getlock { fid: Fid, lock: NineLock },
        /// Makes a hard link (L).
        70 Link { dir: Fid, fid: Fid, name: NineString },
        /// Makes a directory (L).
        72 Mkdir { dir: Fid, name: NineString, mode: u32, gid: u32 },
        /// Renames (L).
        74 Renameat { dir: Fid, name: NineString, to_dir: Fid, to_name: NineString },
        /// Removes a name; flag 0x200 of a directory (L).
        76 Unlinkat { dir: Fid, name: NineString, flags: u32 },
        /// Negotiates the dialect and the message size.
        100 Version { msize: u32, version: NineString },
        /// Asks for a fid to authenticate over; the tail is the user's number (L).
        102 Auth { afid: Fid, uname: NineString, aname: NineString, uid: Tail },
        /// Selects a tree; the tail is the user's number (L).
        104 Attach { fid: Fid, afid: Fid, uname: NineString, aname: NineString, uid: Tail },
        /// Cancels a request.
        108 Flush { old: u16 },
        /// Walks down names.
        110 Walk { fid: Fid, newfid: Fid, names: Few<NineString> },
        /// Opens.
        112 Open { fid: Fid, mode: u8 },
        /// Creates and opens.
        114 Create { fid: Fid, name: NineString, perm: u32, mode: u8 },
        /// Reads.
        116 Read { fid: Fid, offset: u64, count: u32 },
        /// Writes.
        118 Write { fid: Fid, offset: u64, data: Data },
        /// Gives a fid back.
        120 Clunk { fid: Fid },
        /// Removes the file of a fid, and gives the fid back.
        122 Remove { fid: Fid },
        /// Reads attributes.
        124 Stat { fid: Fid },
        /// Changes attributes, and the name.
        126 Wstat { fid: Fid, stat: SizedStat },
    }
}

messages! {
    /// A reply, from server to client.
    Rmessage {
        /// Replies to any request that failed (L), with the number of Linux.
        7 Lerror { errno: u32 },
        /// Replies to Tstatfs.
        9 Statfs { figures: NineFsStat },
        /// Replies to Tlopen.
        13 Lopen { qid: Qid, iounit: u32 },
        /// Replies to Tlcreate.
        15 Lcreate { qid: Qid, iounit: u32 },
        /// Replies to Tsymlink.
        17 Symlink { qid: Qid },
        /// Replies to Tmknod.
        19 Mknod { qid: Qid },
        /// Replies to Trename.
        21 Rename { },
        /// Replies to Treadlink.
        23 Readlink { target: NineString },
        /// Replies to Tgetattr.
        25 Getattr { attributes: Attributes },
        /// Replies to Tsetattr.
        27 Setattr { },
        /// Replies to Txattrwalk.
        31 Xattrwalk { size: u64 },
        /// Replies to Txattrcreate.
        33 Xattrcreate { },
        /// Replies to Treaddir, with packed entries.
        41 Readdir { data: Data },
        /// Replies to Tfsync.
        51 Fsync { },
        /// Replies to Tlock: success 0, blocked 1, error 2, grace 3.
        53 Lock { status: u8 },
        /// Replies to Tgetlock.
        55 Getlock { lock: NineLock },
        /// Replies to Tlink.
        71 Link { },
        /// Replies to Tmkdir.
        73 Mkdir { qid: Qid },
        /// Replies to Trenameat.
        75 Renameat { },
        /// Replies to Tunlinkat.
        77 Unlinkat { },
        /// Replies to Tversion.
        101 Version { msize: u32, version: NineString },
        /// Replies to Tauth.
        103 Auth { qid: Qid },
        /// Replies to Tattach.
        105 Attach { qid: Qid },
        /// Replies to any request that failed (9P2000), with a text.
        107 Error { text: NineString },
        /// Replies to Tflush.
        109 Flush { },
        /// Replies to Twalk: one qid for each name that was walked.
        111 Walk { qids: Few<Qid> },
        /// Replies to Topen.
        113 Open { qid: Qid, iounit: u32 },
        /// Replies to Tcreate.
        115 Create { qid: Qid, iounit: u32 },
        /// Replies to Tread.
        117 Read { data: Data },
        /// Replies to Twrite.
        119 Write { count: u32 },
        /// Replies to Tclunk.
        121 Clunk { },
        /// Replies to Tremove.
        123 Remove { },
        /// Replies to Tstat.
        125 Stat { stat: SizedStat },
        /// Replies to Twstat.
        127 Wstat { },
    }
}
