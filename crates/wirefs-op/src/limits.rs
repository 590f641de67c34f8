//! Every limit of the protocol, named once, with the relations between them checked at compile time.

/// The longest file name, in bytes (POSIX `NAME_MAX` on Linux file systems).
pub const NAME_BYTES_MAX: usize = 255;
/// The longest path in a message, in bytes. Longer than `PATH_MAX`, since a process may descend step by step.
pub const PATH_BYTES_MAX: usize = 32 * 1024;
/// The longest symbolic link target, in bytes (`PATH_MAX`).
pub const TARGET_BYTES_MAX: usize = 4096;
/// The longest extended attribute value, in bytes (`XATTR_SIZE_MAX`).
pub const XATTR_BYTES_MAX: usize = 64 * 1024;
/// The data in one message at most, in bytes. A longer transfer is cut into several messages, so that a small
/// request waits for one such piece at most.
pub const DATA_BYTES_MAX: usize = 128 * 1024;
/// Bytes of a message beside its data, at most: two paths and the fixed fields.
pub const HEAD_BYTES_MAX: usize = 2 * PATH_BYTES_MAX + 1024;
/// The largest message, size word included, in bytes.
pub const MESSAGE_BYTES_MAX: usize = HEAD_BYTES_MAX + DATA_BYTES_MAX;
/// The smallest message: `size[4] type[1] tag[2]`.
pub const MESSAGE_BYTES_MIN: usize = 7;
/// Requests that one session may have outstanding, at most. Tags are 16 bits; `NOTAG` is not used for requests.
pub const REQUESTS_MAX: usize = 4096;
/// How far the number of a change may be above the lowest one whose reply the client has not told to have: so many replies a
/// server keeps.
pub const LEDGER_MAX: u64 = 2 * REQUESTS_MAX as u64;
/// Open files that one session may hold at the server, at most.
pub const FDS_MAX: usize = 16 * 1024;
/// Directory entries in one reply are packed into at most this many bytes.
pub const LISTING_BYTES_MAX: usize = DATA_BYTES_MAX;
/// The paths of the directories in one reply to Tfind, spelled out, in bytes together, at most: they travel much shorter.
pub const FIND_PATH_BYTES_MAX: usize = 1024 * 1024;
/// Items in one recall, at most.
pub const RECALL_ITEMS_MAX: usize = 240;
/// An item of a recall in bytes, at most: `id[16] present[1] name[s]`.
pub const RECALL_ITEM_BYTES_MAX: usize = 16 + 1 + 2 + NAME_BYTES_MAX;

const _: () = assert!(XATTR_BYTES_MAX <= DATA_BYTES_MAX, "an xattr value travels in one message");
const _: () = assert!(TARGET_BYTES_MAX <= DATA_BYTES_MAX, "a link target travels in one message");
const _: () = assert!(REQUESTS_MAX < u16::MAX as usize, "each outstanding request needs a tag of its own");
const _: () = assert!(FDS_MAX < u16::MAX as usize, "fd[2] must name each open file and NOFD");
const _: () = assert!(PATH_BYTES_MAX <= FIND_PATH_BYTES_MAX, "each directory can be told of");
const _: () = assert!(
    MESSAGE_BYTES_MIN + 8 + 2 + RECALL_ITEMS_MAX * RECALL_ITEM_BYTES_MAX <= HEAD_BYTES_MAX,
    "the longest recall is no longer than the fields of any other message"
);
const _: () = assert!(PATH_BYTES_MAX <= u16::MAX as usize, "s[2] carries a path's length");
