//! The path MTU, measured: the largest packet that a host echoes.
//!
//! What routers report cannot be relied on: some report nothing, and anybody can forge such a report. What comes back
//! has passed both ways.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::batch::Batch;
use crate::error::RawError;
use crate::icmp::header::Sequence;
use crate::icmp::{EchoSocket, Family};
use crate::limits::{
    BATCH_PACKETS_MAX, ECHO_HEADER_BYTES, IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, PAYLOAD_BYTES_MAX,
};

/// Packets of one size that are sent, before it counts as too large.
const TRIES: usize = 3;
/// The largest IP packet that every IPv4 host must take (RFC 791), in bytes.
const IPV4_MTU_MIN: usize = 576;
/// The largest IP packet that every IPv6 path must pass (RFC 8200), in bytes.
const IPV6_MTU_MIN: usize = 1_280;

/// Headers of an echo packet, in bytes.
fn header_bytes(family: Family) -> usize {
    ECHO_HEADER_BYTES
        + match family {
            Family::V4 => IPV4_HEADER_BYTES,
            Family::V6 => IPV6_HEADER_BYTES,
        }
}

impl EchoSocket {
    /// The payload of an echo packet that fills an IP packet of `mtu` bytes, in bytes.
    pub fn payload_bytes(&self, mtu: usize) -> usize {
        mtu.saturating_sub(header_bytes(self.family())).min(PAYLOAD_BYTES_MAX)
    }

    /// Measures the largest IP packet that reaches the host and comes back unfragmented, in bytes. Waits up to `patience`
    /// for each reply; use it before the socket is used for anything else.
    ///
    /// # Cost
    /// One round trip where the whole path takes what the first device does; else about a dozen waits.
    ///
    /// # Errors
    /// [`RawError::NoAnswer`] when not even the smallest packet that all must take comes back; [`RawError::Io`].
    pub fn measure_mtu(&self, patience: Duration) -> Result<usize, RawError> {
        let least = match self.family() {
            Family::V4 => IPV4_MTU_MIN,
            Family::V6 => IPV6_MTU_MIN,
        };
        let route = self.route_mtu()?.clamp(least, PAYLOAD_BYTES_MAX + header_bytes(self.family()));
        if self.passes(route, patience)? {
            return Ok(route);
        }
        if !self.passes(least, patience)? {
            return Err(RawError::NoAnswer { host: self.host() });
        }
        let (mut good, mut bad) = (least, route);
        while bad - good > 1 {
            let middle = good.midpoint(bad);
            if self.passes(middle, patience)? { good = middle } else { bad = middle }
        }
        Ok(good)
    }

    /// Whether a packet of so many bytes comes back.
    fn passes(&self, mtu: usize, patience: Duration) -> Result<bool, RawError> {
        let payload_bytes = self.payload_bytes(mtu);
        let mut batch = Batch::new(payload_bytes);
        for number in 0..TRIES {
            batch.clear();
            batch.push(|room| Some((payload_bytes.min(room.len()), Sequence(number as u16))));
            if self.send(&mut batch)?.too_large > 0 {
                return Ok(false);
            }
            if self.hears(payload_bytes, patience)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a reply with so many bytes comes in time. Late ones of other sizes are passed over.
    fn hears(&self, payload_bytes: usize, patience: Duration) -> Result<bool, RawError> {
        let mut batch = Batch::new(PAYLOAD_BYTES_MAX);
        let failed = |errno: rustix::io::Errno| RawError::io("wait for an echo reply")(errno.into());
        let timeout = Timespec::try_from(patience).map_err(|_| failed(rustix::io::Errno::INVAL))?;
        // Each round takes something off the socket, so that a host which sends nonsense cannot hold it up for long.
        for _ in 0..BATCH_PACKETS_MAX {
            if poll(&mut [PollFd::new(self, PollFlags::IN)], Some(&timeout)).map_err(failed)? == 0 {
                return Ok(false);
            }
            self.receive(&mut batch, BATCH_PACKETS_MAX)?;
            let mut is_heard = false;
            batch.exchange(|payload, _| {
                is_heard |= payload.len() == payload_bytes;
                None
            });
            if is_heard {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
