//! Status of a carrier's network paths.

use std::time::Duration;

/// One network path of a carrier that has or could have several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathStatus {
    /// The local network card.
    pub card: String,
    /// The hardware address of the peer's card.
    pub remote: String,
    /// The path carries data.
    pub is_up: bool,
    /// The measured rate in bytes per second; `None` before the first measurement.
    pub rate: Option<u64>,
    /// The smoothed RTT; `None` before the first measurement.
    pub rtt: Option<Duration>,
    /// Bytes of acknowledged packets.
    pub arrived_bytes: u64,
    /// Bytes of packets that were lost and retransmitted.
    pub lost_bytes: u64,
}
