//! The changes that are on the server's disk.

use wirefs_op::Time;

/// The state of the changes that are on the server's disk.
#[derive(Debug, Default)]
pub(crate) struct Durable {
    /// The server's disk has all changes below this number.
    pub(crate) below: u64,
    /// A change was issued after the last request to sync.
    pub(crate) is_due: bool,
    /// A request to sync is in progress.
    pub(crate) asked: bool,
    pub(crate) asked_at: Time,
    /// The next request to sync is sent at once.
    pub(crate) is_urgent: bool,
    /// The number of the next change at the last check, and the time since which it has been the same.
    pub(crate) seen: u64,
    pub(crate) seen_at: Time,
}
