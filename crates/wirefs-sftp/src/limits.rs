//! Limits of the protocol and of this tree.

use std::time::Duration;

/// The longest packet that is accepted, in bytes; OpenSSH's is 256 KiB.
pub(crate) const PACKET_BYTES_MAX: usize = 1024 * 1024;
/// The data of one read or write that each server takes, in bytes (draft-ietf-secsh-filexfer-02, section 3).
pub(crate) const DATA_BYTES_USUAL: u32 = 32 * 1024;
/// Bytes of reads that one request has in flight.
pub(crate) const READ_AHEAD_BYTES: u64 = 4 * 1024 * 1024;
/// Handles kept open for a session, if the server names no limit. OpenSSH's limit is then at least 100.
pub(crate) const HANDLES_USUAL: usize = 64;
/// Handles kept open for a session, at most.
pub(crate) const HANDLES_MAX: usize = 1024;
/// READDIRs of one directory that are sent at first: a short listing, and its end.
pub(crate) const READDIRS_FIRST: usize = 2;
/// READDIRs of one long directory in flight.
pub(crate) const READDIRS_MAX: usize = 16;
/// Directories of a subtree that are listed at a time: at first, and at most.
pub(crate) const DIRECTORIES: (usize, usize) = (16, 128);
/// Small files that are read at a time.
pub(crate) const FILES_AT_ONCE: usize = 64;
/// Entries of one directory. Longer listings fail.
pub(crate) const ENTRIES_MAX: usize = 8 * 1024 * 1024;
/// Listings that are kept while their directory is listed in several requests.
pub(crate) const LISTINGS_MAX: usize = 8;
/// Time in which a lost connection is dialed again before requests fail.
pub(crate) const RECONNECT_MAX: Duration = Duration::from_secs(20);
/// Time between two dials.
pub(crate) const RECONNECT_PAUSE: Duration = Duration::from_millis(500);
