//! The limits of the block store.

use std::time::Duration;

/// Hosts of one store; the index has 6 bits for their number.
pub const HOSTS_MAX: usize = 64;
/// Packets of one block, redundancy included. A packet has one byte for that number; one value marks a
/// padding probe.
pub const LANES_MAX: usize = 32;
/// The largest payload of an echo packet in bytes: an IPv4 packet without headers.
pub const PACKET_BYTES_MAX: usize = 65_507;
/// The smallest maximum payload in bytes: 576, which IPv4 passes everywhere, without the longest IPv4 header
/// and ICMP's.
pub const PACKET_BYTES_MIN: usize = 508;
/// Payload bytes in the send queues. A block beyond that is refused.
pub const SEND_QUEUE_BYTES_MAX: usize = 4 << 20;
/// Payload bytes of collected pieces.
pub const COLLECTED_BYTES_MAX: usize = 16 << 20;
/// Pending fetches.
pub const FETCHES_MAX: usize = 65_536;
/// Events that may be queued when one more block is overheard. The driver polls after each batch of packets.
pub const PASSED_MAX: usize = 4_096;
/// Tombstones of dropped blocks in a store without an index (`--keep=root`).
pub const DROPPED_MAX: usize = 65_536;
/// Packets to one host that a store without an index can tell from replays: one bit each.
pub const WINDOW_PACKETS_MAX: usize = 1 << 24;
/// Groups of packets on the timeline of one host; more groups are merged in pairs.
pub const SEND_GROUPS_MAX: usize = 128;
/// The time between two driver calls above which the store's clock stops.
pub const STALL_MIN: Duration = Duration::from_millis(500);
/// The longest time between two timer ticks.
pub const TICK_MAX: Duration = Duration::from_millis(100);
/// The shortest time between two timer ticks.
pub const TICK_MIN: Duration = Duration::from_micros(200);
/// The smallest reordering window (RACK).
pub const REORDERING_WINDOW_MIN: Duration = Duration::from_millis(1);
/// The smallest reply timeout.
pub const REPLY_TIMEOUT_MIN: Duration = Duration::from_millis(10);
/// The first interval between probes of a host that does not answer.
pub const PROBE_WAIT_MIN: Duration = Duration::from_secs(1);
/// The longest interval between probes of a host that does not answer.
pub const PROBE_WAIT_MAX: Duration = Duration::from_secs(10);
/// Packets per second that a driver takes from the receive buffer while the store is in use, unless the
/// host's rate is lower. A longer cycle is that of an idle driver.
pub const BUSY_RATE: u32 = 20_000;
/// Packets that a host may hold before its rate is known.
pub const INITIAL_PACKETS: u64 = 16;

const _: () = assert!(
    STALL_MIN.as_nanos() > 2 * TICK_MAX.as_nanos(),
    "a driver that meets its deadlines never counts as stopped"
);
const _: () = assert!(HOSTS_MAX <= 1 << 6, "a host's number has 6 bits in the index");
