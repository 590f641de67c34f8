//! One network path of a carrier that has several.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wirefs_carrier::PathStatus;

use super::table::{bytes, span};

/// One network path of a carrier that has several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Path {
    /// Our network card.
    pub(crate) card: String,
    /// The hardware address of the peer's card.
    pub(crate) remote: String,
    /// The path carries data.
    pub(crate) is_up: bool,
    /// The measured rate in bytes per second; none before the first measurement.
    pub(crate) rate: Option<u64>,
    /// The smoothed RTT in microseconds; none before the first measurement.
    pub(crate) rtt_us: Option<u64>,
    /// Bytes of acknowledged packets, and of packets that were lost and retransmitted.
    pub(crate) arrived_bytes: u64,
    pub(crate) lost_bytes: u64,
}

impl Path {
    pub(crate) fn of(path: &PathStatus) -> Path {
        Path {
            card: path.card.clone(),
            remote: path.remote.clone(),
            is_up: path.is_up,
            rate: path.rate,
            rtt_us: path.rtt.map(|rtt| u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX)),
            arrived_bytes: path.arrived_bytes,
            lost_bytes: path.lost_bytes,
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_up { "up" } else { "DOWN" };
        write!(f, "{} to {}: {state}", self.card, self.remote)?;
        if let Some(us) = self.rtt_us {
            write!(f, ", RTT {}", span(Duration::from_micros(us)))?;
        }
        if let Some(rate) = self.rate {
            write!(f, ", {}/s", bytes(rate))?;
        }
        let sent = self.arrived_bytes + self.lost_bytes;
        let lost_percent = if sent == 0 { 0.0 } else { self.lost_bytes as f64 * 100.0 / sent as f64 };
        write!(f, ", {} sent, {lost_percent:.1} % lost", bytes(sent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_shown_with_rate_and_loss() {
        let mut path = Path {
            card: "eth0".to_owned(),
            remote: "02:00:00:00:00:01".to_owned(),
            is_up: true,
            rate: Some(2_000_000),
            rtt_us: Some(120),
            arrived_bytes: 990_000,
            lost_bytes: 10_000,
        };
        let text = path.to_string();
        assert!(text.starts_with("eth0 to 02:00:00:00:00:01: up, RTT "), "{text}");
        assert!(text.ends_with(" sent, 1.0 % lost"), "{text}");
        path = Path { is_up: false, rate: None, rtt_us: None, arrived_bytes: 0, lost_bytes: 0, ..path };
        assert_eq!(
            path.to_string(),
            format!("eth0 to 02:00:00:00:00:01: DOWN, {} sent, 0.0 % lost", bytes(0))
        );
    }
}
