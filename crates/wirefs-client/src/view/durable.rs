//! The changes that are on the server's disk.

use wirefs_op::Time;

/// How far the server's disk has what was changed.
#[derive(Debug, Default)]
pub(crate) struct Durable {
    /// It has all changes below this number.
    pub(crate) below: u64,
    /// A change was issued since it was last asked to.
    pub(crate) is_due: bool,
    /// It is being asked to.
    pub(crate) asked: bool,
    pub(crate) asked_at: Time,
    /// It is to be asked at once.
    pub(crate) is_urgent: bool,
    /// The number of the next change when it was last looked at, and since when it is that.
    pub(crate) seen: u64,
    pub(crate) seen_at: Time,
}
