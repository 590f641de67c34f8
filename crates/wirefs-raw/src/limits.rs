//! The limits of the raw sockets.

/// Packets in one batch, received or sent by one system call.
pub const BATCH_PACKETS_MAX: usize = 64;
/// The largest ICMP message in bytes, header included: an IPv4 packet without options.
pub const MESSAGE_BYTES_MAX: usize = 65_535 - IPV4_HEADER_BYTES;
/// The largest payload of an echo packet in bytes.
pub const PAYLOAD_BYTES_MAX: usize = MESSAGE_BYTES_MAX - ECHO_HEADER_BYTES;
/// The header of an ICMP or ICMPv6 echo message in bytes.
pub const ECHO_HEADER_BYTES: usize = 8;
/// An IPv4 header without options in bytes. Raw IPv4 sockets receive packets with it.
pub const IPV4_HEADER_BYTES: usize = 20;
/// The longest IPv4 header, with all options, in bytes.
pub const IPV4_HEADER_BYTES_MAX: usize = 60;
/// An IPv6 header in bytes. Raw IPv6 sockets receive packets without it.
pub const IPV6_HEADER_BYTES: usize = 40;
/// The header of an Ethernet frame in bytes: destination, source, type.
pub const ETHERNET_HEADER_BYTES: usize = 14;
/// The largest payload of a frame in bytes: jumbo frames of common cards.
pub const FRAME_PAYLOAD_BYTES_MAX: usize = 9_216;
/// The largest receive buffer of a socket, in bytes of the kernel's accounting (an `int`, half of which is
/// the requested value).
pub const RECEIVE_BYTES_MAX: usize = 1 << 30;
/// The largest receive ring in bytes.
pub const RING_BYTES_MAX: usize = 64 << 20;
/// Pending errors that one call discards before it reports the last.
pub(crate) const ERRORS_PER_CALL_MAX: usize = 64;

const _: () = assert!(
    ECHO_HEADER_BYTES + PAYLOAD_BYTES_MAX + IPV4_HEADER_BYTES == 65_535,
    "an IPv4 packet's length has 16 bits"
);
const _: () = assert!(IPV4_HEADER_BYTES_MAX == 15 * 4, "the header's length is counted in 4 bits of 4 bytes");
