//! Every limit of the server, named once.

use std::time::Duration;
use wirefs_lease::limits::{EXCLUSIVE_RECALL_MAX, HOLDERS_MAX, MARGIN, TERM};
use wirefs_op::limits::{DATA_BYTES_MAX, MESSAGE_BYTES_MAX, REQUESTS_MAX};

/// Connections at a time.
pub const CONNECTIONS_MAX: usize = 256;
/// Data connections of one session at a time, beside its first one.
pub const DATA_CONNECTIONS_MAX: usize = 3;
/// Sessions at a time, those without a connection included.
pub const SESSIONS_MAX: usize = 256;
/// How long a session waits for its client to come back.
pub const GRACE: Duration = Duration::from_secs(90);
/// Bytes of one reply beside its data, at most: three stats and the fixed fields.
pub const REPLY_HEAD_BYTES_MAX: usize = 1024;
/// The smallest message size that a client may offer, in bytes.
pub const MSIZE_MIN: usize = DATA_BYTES_MAX + REPLY_HEAD_BYTES_MAX;
/// Bytes of one session's ordered requests that wait or run; past it the driver leaves the rest on the wire.
pub const BACKLOG_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The same while the first of them waits for other clients to answer: so much that no client of ours is ever left on the
/// wire then, or its own answers would be stuck behind what it writes, and two could wait for each other.
pub const BACKLOG_WAITING_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of all sessions' ordered requests together; past it [`BACKLOG_BYTES_MAX`] counts for each in any case.
pub const BACKLOG_ALL_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Bytes of one session's unordered requests that wait or run; past it a request is refused with ENOMEM.
pub const FREE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Requests of one session that earlier connections may have left behind when it is resumed.
pub const ORPHANS_MAX: usize = REQUESTS_MAX;
/// How long a server that follows one without a clean end lets nothing change: until no client believes the leases of the
/// former any more.
pub const RECOVERY: Duration = Duration::from_secs(TERM.as_secs() + MARGIN.as_secs());
/// How long who comes waits for somebody who is alone, at the longest: it is expelled when its time is over, and believes what
/// it was told for a while still.
pub const PATIENCE: Duration =
    Duration::from_secs(EXCLUSIVE_RECALL_MAX.as_secs() + TERM.as_secs() + 2 * MARGIN.as_secs());

const _: () = assert!(MSIZE_MIN <= MESSAGE_BYTES_MAX, "a client that takes our largest reply can be served");
const _: () = assert!(
    BACKLOG_BYTES_MAX < BACKLOG_WAITING_BYTES_MAX && BACKLOG_WAITING_BYTES_MAX < BACKLOG_ALL_BYTES_MAX,
    "more room where somebody waits, and room for several of them"
);
const _: () = assert!(SESSIONS_MAX <= HOLDERS_MAX, "each session may hold leases");
const _: () = assert!(
    BACKLOG_BYTES_MAX > MESSAGE_BYTES_MAX && FREE_BYTES_MAX > MESSAGE_BYTES_MAX,
    "one request alone is never too much"
);
