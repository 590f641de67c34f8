//! The limits of the protocol; relations between them are checked at compile time.

/// The longest file name, in bytes (POSIX `NAME_MAX` on Linux file systems).
pub const NAME_BYTES_MAX: usize = 255;
/// The longest path in a message, in bytes. Longer than `PATH_MAX`, since a process may descend directory by
/// directory.
pub const PATH_BYTES_MAX: usize = 32 * 1024;
/// The longest symbolic link target, in bytes (`PATH_MAX`).
pub const TARGET_BYTES_MAX: usize = 4096;
/// The longest extended attribute value, in bytes (`XATTR_SIZE_MAX`).
pub const XATTR_BYTES_MAX: usize = 64 * 1024;
/// The maximal data in one message, in bytes. Longer transfers are split, so that a small request waits for
/// at most one such message.
pub const DATA_BYTES_MAX: usize = 128 * 1024;
/// The maximal size of a message without its data, in bytes: two paths and the fixed fields.
pub const HEAD_BYTES_MAX: usize = 2 * PATH_BYTES_MAX + 1024;
/// The largest message, including the size word, in bytes.
pub const MESSAGE_BYTES_MAX: usize = HEAD_BYTES_MAX + DATA_BYTES_MAX;
/// The maximal total length of the messages in one packed message, in bytes. Even if they do not shrink, the packed
/// message is no larger than [`MESSAGE_BYTES_MAX`].
pub const PACKED_BYTES_MAX: usize = 187 * 1024;
/// The maximal number of messages in one packed message.
pub const PACKED_MESSAGES_MAX: usize = 1024;
/// The smallest message: `size[4] type[1] tag[2]`.
pub const MESSAGE_BYTES_MIN: usize = 7;
/// The maximal number of outstanding requests per session. Tags are 16 bits; `NOTAG` is not used for
/// requests.
pub const REQUESTS_MAX: usize = 4096;
/// The maximal distance of a change number above the lowest one whose reply the client has not acknowledged:
/// the number of replies that a server keeps.
pub const LEDGER_MAX: u64 = 2 * REQUESTS_MAX as u64;
/// The maximal number of open files that one session may hold at the server.
pub const FDS_MAX: usize = 16 * 1024;
/// The maximal size of the directory entries in one reply, in bytes.
pub const LISTING_BYTES_MAX: usize = DATA_BYTES_MAX;
/// The maximal total length of the directory paths in one reply to Tfind, uncompressed, in bytes.
pub const FIND_PATH_BYTES_MAX: usize = 1024 * 1024;
/// The maximal number of items in one recall.
pub const RECALL_ITEMS_MAX: usize = 240;
/// The maximal size of a recall item, in bytes: `id[16] present[1] name[s]`.
pub const RECALL_ITEM_BYTES_MAX: usize = 16 + 1 + 2 + NAME_BYTES_MAX;

const _: () = assert!(
    PACKED_BYTES_MAX + PACKED_BYTES_MAX / 128 + 1024 <= MESSAGE_BYTES_MAX,
    "zstd grows data by less than 1/256 and 64 bytes (its ZSTD_compressBound)"
);
const _: () = assert!(XATTR_BYTES_MAX <= DATA_BYTES_MAX, "an xattr value travels in one message");
const _: () = assert!(TARGET_BYTES_MAX <= DATA_BYTES_MAX, "a link target travels in one message");
const _: () = assert!(REQUESTS_MAX < u16::MAX as usize, "each outstanding request needs a tag of its own");
const _: () = assert!(FDS_MAX < u16::MAX as usize, "fd[2] must name each open file and NOFD");
const _: () = assert!(PATH_BYTES_MAX <= FIND_PATH_BYTES_MAX, "each directory fits into a message");
const _: () = assert!(
    MESSAGE_BYTES_MIN + 8 + 2 + RECALL_ITEMS_MAX * RECALL_ITEM_BYTES_MAX <= HEAD_BYTES_MAX,
    "the longest recall is no longer than the fields of any other message"
);
const _: () = assert!(PATH_BYTES_MAX <= u16::MAX as usize, "s[2] carries a path's length");
