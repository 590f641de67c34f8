//! The receive buffer of an echo socket, sized by packets instead of bytes.
//!
//! The kernel charges a packet not by its payload but by the memory that it occupies, and drops what comes when the
//! account is over the limit. So whoever admits packets to the wire must know how many of them fit here, should all come
//! before the first is read.

use std::os::fd::AsFd;

use rustix::net::sockopt;

use crate::error::RawError;
use crate::icmp::EchoSocket;
use crate::limits::{ECHO_HEADER_BYTES, IPV6_HEADER_BYTES, PAYLOAD_BYTES_MAX, RECEIVE_BYTES_MAX};
use crate::sys;

/// The kernel's `sk_buff`, rounded up as its allocator does, in bytes.
const DESCRIPTOR_BYTES: usize = 256;
/// The kernel's `skb_shared_info` at the end of each buffer, in bytes.
const TRAILER_BYTES: usize = 320;
/// Room in front of the IP header: of the link's header, and what drivers reserve, in bytes.
const HEADROOM_BYTES: usize = 64;
/// The smallest buffer that the kernel allocates for a packet, in bytes.
const BUFFER_BYTES_MIN: usize = 576;
/// Up to this a buffer is one piece of a power of two; a larger one is the smallest, and whole pages. In bytes.
const BUFFER_BYTES_MAX: usize = 16_384;
/// A page, in bytes, of the machines with the smallest.
const PAGE_BYTES: usize = 4_096;

/// What the kernel is expected to charge at most for a packet with this payload, in bytes.
///
/// # Source
/// Ours, checked against `SO_MEMINFO` on loopback and veth devices (`tests/suite/memory.rs`); a driver that receives
/// into whole pages may charge more, which [`EchoSocket::memory`] shows while packets wait.
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

/// The account that the kernel keeps of a socket's receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Charged for packets that wait, in bytes.
    pub held_bytes: usize,
    /// The limit, in bytes: what comes while the charge is above it is dropped.
    pub limit_bytes: usize,
    /// Packets dropped since the socket was opened; some kernels count each twice. It should stay zero.
    pub dropped: u32,
}

impl EchoSocket {
    /// Enlarges the receive buffer for this many packets with this much payload, and returns how many fit indeed:
    /// without CAP_NET_ADMIN no more than `net.core.rmem_max` grants.
    ///
    /// # Errors
    /// [`RawError::Io`].
    pub fn reserve(&self, packets: usize, payload_bytes: usize) -> Result<usize, RawError> {
        let charge = charge_bytes(payload_bytes);
        // The kernel doubles what it is asked for, to make up for its own charges; ours are counted already.
        let asked = packets.saturating_mul(charge).min(2 * RECEIVE_BYTES_MAX - 2).div_ceil(2);
        let forced = sockopt::set_socket_recv_buffer_size_force(self.as_fd(), asked);
        if forced.is_err() {
            sockopt::set_socket_recv_buffer_size(self.as_fd(), asked)
                .map_err(|errno| RawError::io("size a receive buffer")(errno.into()))?;
        }
        Ok(self.memory()?.limit_bytes / charge)
    }

    /// The kernel's account of the receive buffer now.
    ///
    /// # Errors
    /// [`RawError::Io`].
    pub fn memory(&self) -> Result<Memory, RawError> {
        let words = sys::memory(self.as_fd()).map_err(RawError::io("ask for a socket's memory"))?;
        let [held, limit, .., dropped] = words;
        Ok(Memory { held_bytes: held as usize, limit_bytes: limit as usize, dropped })
    }
}

#[cfg(test)]
mod tests;
