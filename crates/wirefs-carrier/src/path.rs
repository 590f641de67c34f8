//! What is told of the ways that a carrier takes.

use std::time::Duration;

/// One of the ways of a carrier that has several, or could have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathStatus {
    /// Our network card.
    pub card: String,
    /// The hardware address of the peer's.
    pub remote: String,
    /// It carries data.
    pub is_up: bool,
    /// Its measured rate in bytes a second, once that was measured.
    pub rate: Option<u64>,
    /// Its round trip on average, once that was measured.
    pub rtt: Option<Duration>,
    /// Bytes of our packets that arrived.
    pub arrived_bytes: u64,
    /// Bytes of those that were lost and sent anew.
    pub lost_bytes: u64,
}
