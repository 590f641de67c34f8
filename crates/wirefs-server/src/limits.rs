//! Every limit of the server.

use std::time::Duration;
use wirefs_lease::limits::{EXCLUSIVE_RECALL_MAX, HOLDERS_MAX, MARGIN, TERM};
use wirefs_op::limits::{DATA_BYTES_MAX, MESSAGE_BYTES_MAX, REQUESTS_MAX};

/// Open connections. One party gets at most half of them.
pub const CONNECTIONS_MAX: usize = 1024;
/// How long a connection may take until its first Tattach.
pub const FIRST_ATTACH_MAX: Duration = Duration::from_secs(10);
/// Open data connections of one session, beside its main connection.
pub const DATA_CONNECTIONS_MAX: usize = 3;
/// Sessions, with or without a connection. One party gets at most half of them.
pub const SESSIONS_MAX: usize = 1024;
/// How long a session without a connection waits for its client.
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(90);
/// Bytes of one reply beside its data: three stats and the fixed fields.
pub const REPLY_HEAD_BYTES_MAX: usize = 1024;
/// The smallest message size that a client may offer, in bytes.
pub const MSIZE_MIN: usize = DATA_BYTES_MAX + REPLY_HEAD_BYTES_MAX;
/// Bytes of one session's queued and running ordered requests. Beyond them the driver stops reading the session's
/// connection.
pub const BACKLOG_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The same limit while the first of these requests waits for recalls. It is larger than everything a wirefs client
/// sends unanswered, so that recall answers are not stuck behind its writes. Otherwise two clients could wait for
/// each other.
pub const BACKLOG_WAITING_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of all sessions' ordered requests. Beyond them [`BACKLOG_BYTES_MAX`] applies to each session.
pub const BACKLOG_ALL_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Bytes of one session's queued and running unordered requests. Beyond them a request fails with ENOMEM.
pub const UNORDERED_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Unfinished requests of earlier connections with which a session can be resumed.
pub const ORPHANS_MAX: usize = REQUESTS_MAX;
/// After an unclean end of the previous server, changes wait this long: until its leases have expired at every
/// client.
pub const RECOVERY_PERIOD: Duration = Duration::from_secs(TERM.as_secs() + MARGIN.as_secs());
/// The longest time that an attaching session waits for another session to stop being exclusive. The exclusive
/// session is expelled at the end of its recall time, and its leases must then expire.
pub const EXCLUSIVE_END_MAX: Duration =
    Duration::from_secs(EXCLUSIVE_RECALL_MAX.as_secs() + TERM.as_secs() + 2 * MARGIN.as_secs());

const _: () = assert!(MSIZE_MIN <= MESSAGE_BYTES_MAX, "a client that takes our largest reply can be served");
const _: () = assert!(
    BACKLOG_BYTES_MAX < BACKLOG_WAITING_BYTES_MAX && BACKLOG_WAITING_BYTES_MAX < BACKLOG_ALL_BYTES_MAX,
    "more room where somebody waits, and room for several of them"
);
const _: () = assert!(SESSIONS_MAX <= HOLDERS_MAX, "each session may hold leases");
const _: () = assert!(
    BACKLOG_BYTES_MAX > MESSAGE_BYTES_MAX && UNORDERED_BYTES_MAX > MESSAGE_BYTES_MAX,
    "one request alone is never too much"
);
