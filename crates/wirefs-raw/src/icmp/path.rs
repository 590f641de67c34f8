//! Path MTU discovery: the largest packet that a host echoes.
//!
//! Reports of routers are unreliable: some routers send none, and anyone can forge them. A reply proves that
//! the packet passed both ways.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::batch::PacketBatch;
use crate::error::RawError;
use crate::icmp::header::EchoSequence;
use crate::icmp::{EchoSocket, Family};
use crate::limits::{
    BATCH_PACKETS_MAX, ECHO_HEADER_BYTES, IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, PAYLOAD_BYTES_MAX,
};

/// Packets of one size that are sent before the size counts as too large.
const TRIES: usize = 3;
/// The largest IP packet that every IPv4 host must accept (RFC 791), in bytes.
const IPV4_MTU_MIN: usize = 576;
/// The largest IP packet that every IPv6 path must pass (RFC 8200), in bytes.
const IPV6_MTU_MIN: usize = 1_280;

/// Returns the size of all headers of an echo packet in bytes.
fn header_bytes(family: Family) -> usize {
    ECHO_HEADER_BYTES
        + match family {
            Family::V4 => IPV4_HEADER_BYTES,
            Family::V6 => IPV6_HEADER_BYTES,
        }
}

impl EchoSocket {
    /// Returns the payload of an echo packet in an IP packet of `mtu` bytes, in bytes.
    pub fn payload_bytes(&self, mtu: usize) -> usize {
        mtu.saturating_sub(header_bytes(self.family())).min(PAYLOAD_BYTES_MAX)
    }

    /// Measures the largest IP packet in bytes that reaches the host and returns unfragmented. Waits up to
    /// `patience` for each reply. Call it before the socket is used otherwise.
    ///
    /// # Cost
    /// One RTT if the whole path has the MTU of the first device; else about a dozen waits.
    ///
    /// # Errors
    /// [`RawError::NoAnswer`] if not even the smallest mandatory packet returns; [`RawError::Io`].
    pub fn measure_mtu(&self, patience: Duration) -> Result<usize, RawError> {
        let mtu_min = match self.family() {
            Family::V4 => IPV4_MTU_MIN,
            Family::V6 => IPV6_MTU_MIN,
        };
        let route = self.route_mtu()?.clamp(mtu_min, PAYLOAD_BYTES_MAX + header_bytes(self.family()));
        if self.passes(route, patience)? {
            return Ok(route);
        }
        if !self.passes(mtu_min, patience)? {
            return Err(RawError::NoAnswer { host: self.host() });
        }
        let (mut good, mut bad) = (mtu_min, route);
        while bad - good > 1 {
            let middle = good.midpoint(bad);
            if self.passes(middle, patience)? { good = middle } else { bad = middle }
        }
        Ok(good)
    }

    /// Returns whether a packet of `mtu` bytes comes back.
    fn passes(&self, mtu: usize, patience: Duration) -> Result<bool, RawError> {
        let payload_bytes = self.payload_bytes(mtu);
        let mut batch = PacketBatch::new(payload_bytes);
        for number in 0..TRIES {
            batch.clear();
            batch.push(|room| Some((payload_bytes.min(room.len()), EchoSequence(number as u16))));
            if self.send(&mut batch)?.too_large > 0 {
                return Ok(false);
            }
            if self.receives_reply(payload_bytes, patience)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether a reply of this size arrives in time. Late replies of other sizes are skipped.
    fn receives_reply(&self, payload_bytes: usize, patience: Duration) -> Result<bool, RawError> {
        let mut batch = PacketBatch::new(PAYLOAD_BYTES_MAX);
        let failed = |errno: rustix::io::Errno| RawError::io("wait for an echo reply")(errno.into());
        let timeout = Timespec::try_from(patience).map_err(|_| failed(rustix::io::Errno::INVAL))?;
        // Each round takes packets off the socket, so a host that sends garbage cannot delay it for long.
        for _ in 0..BATCH_PACKETS_MAX {
            if poll(&mut [PollFd::new(self, PollFlags::IN)], Some(&timeout)).map_err(failed)? == 0 {
                return Ok(false);
            }
            self.receive(&mut batch, BATCH_PACKETS_MAX)?;
            let mut has_reply = false;
            batch.exchange(|payload, _| {
                has_reply |= payload.len() == payload_bytes;
                None
            });
            if has_reply {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
