//! The receive buffer of an echo socket, sized in packets.
//!
//! The kernel charges a packet by the memory that it occupies, not by its payload, and drops packets above
//! the limit. Admission control therefore needs the number of packets that fit if all arrive before the first
//! is read.

use std::os::fd::AsFd;

use rustix::net::sockopt;

use crate::error::RawError;
use crate::icmp::EchoSocket;
use crate::limits::{ECHO_HEADER_BYTES, IPV6_HEADER_BYTES, PAYLOAD_BYTES_MAX, RECEIVE_BYTES_MAX};
use crate::sys;

/// Size of the kernel's `sk_buff`, rounded up by its allocator, in bytes.
const DESCRIPTOR_BYTES: usize = 256;
/// Size of the kernel's `skb_shared_info` at the end of each buffer, in bytes.
const TRAILER_BYTES: usize = 320;
/// Room before the IP header for the link-layer header and drivers, in bytes.
const HEADROOM_BYTES: usize = 64;
/// The smallest buffer that the kernel allocates for a packet, in bytes.
const BUFFER_BYTES_MIN: usize = 576;
/// Up to this size a buffer is one allocation of a power of two. A larger one is the smallest buffer and
/// whole pages. In bytes.
const BUFFER_BYTES_MAX: usize = 16_384;
/// The smallest page size of all architectures in bytes.
const PAGE_BYTES: usize = 4_096;

/// Returns the largest expected charge of a packet with this payload, in bytes.
///
/// # Source
/// Ours, checked against `SO_MEMINFO` on loopback and veth devices (`tests/suite/memory.rs`). A driver that
/// receives into whole pages may charge more, which [`EchoSocket::buffer_usage`] shows while packets wait.
pub fn charge_bytes(payload_bytes: usize) -> usize {
    let packet = IPV6_HEADER_BYTES + ECHO_HEADER_BYTES + payload_bytes.min(PAYLOAD_BYTES_MAX);
    let buffer = packet + HEADROOM_BYTES + TRAILER_BYTES;
    let allocated = if buffer <= BUFFER_BYTES_MIN {
        BUFFER_BYTES_MIN
    } else if buffer <= BUFFER_BYTES_MAX {
        buffer.next_power_of_two()
    } else {
        BUFFER_BYTES_MIN + packet.next_multiple_of(PAGE_BYTES)
    };
    DESCRIPTOR_BYTES + allocated
}

/// The kernel's accounting of a receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferUsage {
    /// Charge of the waiting packets in bytes.
    pub held_bytes: usize,
    /// The limit in bytes; packets above it are dropped.
    pub limit_bytes: usize,
    /// Packets dropped since the socket was opened; some kernels count each twice. Should be zero.
    pub dropped: u32,
}

impl EchoSocket {
    /// Enlarges the receive buffer for `packets` packets of `payload_bytes`. Returns how many fit: without
    /// CAP_NET_ADMIN no more than `net.core.rmem_max` grants.
    ///
    /// # Errors
    /// [`RawError::Io`].
    pub fn reserve(&self, packets: usize, payload_bytes: usize) -> Result<usize, RawError> {
        let charge = charge_bytes(payload_bytes);
        // The kernel doubles the requested size for its overhead, which `charge` already includes.
        let requested = packets.saturating_mul(charge).min(2 * RECEIVE_BYTES_MAX - 2).div_ceil(2);
        let forced = sockopt::set_socket_recv_buffer_size_force(self.as_fd(), requested);
        if forced.is_err() {
            sockopt::set_socket_recv_buffer_size(self.as_fd(), requested)
                .map_err(|errno| RawError::io("size a receive buffer")(errno.into()))?;
        }
        Ok(self.buffer_usage()?.limit_bytes / charge)
    }

    /// Returns the current accounting of the receive buffer.
    ///
    /// # Errors
    /// [`RawError::Io`].
    pub fn buffer_usage(&self) -> Result<BufferUsage, RawError> {
        let words = sys::memory(self.as_fd()).map_err(RawError::io("read a socket's buffer usage"))?;
        let [held, limit, .., dropped] = words;
        Ok(BufferUsage { held_bytes: held as usize, limit_bytes: limit as usize, dropped })
    }
}

#[cfg(test)]
mod tests;
