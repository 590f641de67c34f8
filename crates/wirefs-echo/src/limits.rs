//! Every limit of the block store, named once.

use std::time::Duration;

/// Hosts that one store spreads its blocks over; their number has 6 bits in the index.
pub const HOSTS_MAX: usize = 64;
/// Packets that one block may take, redundancy included; their number has a byte in each packet, one value is ballast.
pub const LANES_MAX: usize = 32;
/// The largest payload of an echo packet, in bytes: what an IPv4 packet has room for.
pub const PACKET_BYTES_MAX: usize = 65_507;
/// The smallest, in bytes: what IPv4 passes everywhere (576) without its longest header and that of ICMP.
pub const PACKET_BYTES_MIN: usize = 508;
/// Payload bytes that wait in memory to be sent, on their way out or to keep copies apart; more is refused.
pub const OUTBOX_BYTES_MAX: usize = 4 << 20;
/// Payload bytes of pieces collected to put blocks together again.
pub const GATHERED_BYTES_MAX: usize = 16 << 20;
/// Blocks that may be waited for at once.
pub const FETCHES_MAX: usize = 65_536;
/// What may wait to be told when one more block is overheard; the driver hears after each batch of packets.
pub const PASSED_MAX: usize = 4_096;
/// Dropped blocks whose packets may still be under way, where no index knows them (`--keep=root`).
pub const DROPPED_MAX: usize = 65_536;
/// Packets to one host that a store without index can tell from replayed ones: one bit each.
pub const WINDOW_PACKETS_MAX: usize = 1 << 24;
/// Marks on the time line of one host; finer ones are merged.
pub const MARKS_MAX: usize = 128;
/// The time between two calls of a driver beyond which the store counts itself as having been stopped.
pub const STALL_MIN: Duration = Duration::from_millis(500);
/// The longest time that the store leaves its driver alone.
pub const TICK_MAX: Duration = Duration::from_millis(100);
/// The shortest time between two looks at the clock's consequences.
pub const TICK_MIN: Duration = Duration::from_micros(200);
/// Packets that overtake one another by less than this are never taken for lost.
pub const REORDERING_MIN: Duration = Duration::from_millis(1);
/// A reply that is late by less than this is never taken for lost, however short the way is.
pub const PATIENCE_MIN: Duration = Duration::from_millis(10);
/// The wait between two questions to a host that does not answer, at first.
pub const PROBE_WAIT_MIN: Duration = Duration::from_secs(1);
/// The wait between two questions to a host that does not answer, at last.
pub const PROBE_WAIT_MAX: Duration = Duration::from_secs(10);
/// Packets a second that a driver takes of those that wait in the receive buffer while somebody uses the store, unless the host's rate
/// is lower. Laps that are longer than by that are those of a driver that rests.
pub const DRIVEN_RATE: u32 = 20_000;
/// Packets that a host may hold before anything is known of it.
pub const FLOOR_PACKETS: u64 = 16;

const _: () = assert!(STALL_MIN.as_nanos() > 2 * TICK_MAX.as_nanos(), "a driver in time never looks stopped");
const _: () = assert!(HOSTS_MAX <= 1 << 6, "a host's number has 6 bits in the index");
