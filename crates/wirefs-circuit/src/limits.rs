//! All limits of circuits.

use std::time::Duration;

/// The maximum number of cards of a node.
pub const CARDS_MAX: usize = 8;
/// The maximum number of paths of a group; a path number has 4 bits on the wire.
pub const PATHS_MAX: usize = 8;
/// The maximum number of groups of a node, including pending handshakes; a group slot has 8 bits on the wire.
pub const GROUPS_MAX: usize = 256;
/// The maximum number of circuits that each side of a group may have open.
pub const CIRCUITS_MAX: usize = 256;
/// The maximum number of pending handshakes of responders.
pub const HALF_OPEN_MAX: usize = 64;
/// From this number of pending handshakes on, an initiator must present a cookie.
pub const HALF_OPEN_WITHOUT_COOKIE_MAX: usize = 16;
/// The maximum number of pending handshakes of one address.
pub const HALF_OPEN_PER_ADDRESS_MAX: usize = 4;
/// The maximum number of unused ephemeral key pairs.
pub const KEYS_MAX: usize = 32;

/// The maximum packet size, in bytes after the Ethernet header: jumbo frames of common cards.
pub const PACKET_BYTES_MAX: usize = 9_216;
/// The MTU that every Ethernet card supports, in bytes (the base PLPMTU of RFC 8899).
pub const PACKET_BYTES_BASE: usize = 1_500;
/// The minimum MTU of a card, in bytes.
pub const CARD_BYTES_MIN: usize = 576;
/// The minimum payload of Ethernet, in bytes. Shorter packets are padded before sealing, since a card would
/// pad them after it.
pub const PACKET_BYTES_MIN: usize = 46;

/// The size of the anti-replay window, in packets.
pub const REPLAY_PACKETS: usize = 4_096;
/// The maximum number of packets recorded as sent on a path.
pub const SENT_PACKETS_MAX: usize = 4_000;
/// The maximum number of ACK ranges in an acknowledgement.
pub const ACK_RANGES_MAX: usize = 32;
/// The maximum number of retransmittable parts in a packet.
pub const SENT_PARTS_MAX: usize = 8;
/// The number of in-order packets that are acknowledged together.
pub const ACK_EVERY: u32 = 8;
/// The maximum delay of an acknowledgement.
pub const ACK_DELAY_MAX: Duration = Duration::from_millis(1);

/// The initial flow-control credit of a circuit, in bytes.
pub const INITIAL_CREDIT: u64 = 32 << 10;
/// The maximum receive window of a request circuit, in bytes.
pub const REQUEST_CREDIT_MAX: u64 = 256 << 10;
/// The maximum receive window of a bulk circuit, in bytes.
pub const BULK_CREDIT_MAX: u64 = 4 << 20;
/// The credit that all circuits of a group share beyond their initial credit, in bytes.
pub const CREDIT_POOL: u64 = 32 << 20;
/// The maximum number of queued control parts of a group: several for each circuit.
pub const CONTROL_PARTS_MAX: usize = 8 * CIRCUITS_MAX;
/// Received data shorter than this is appended to the preceding chunk. In bytes.
pub const READY_BYTES_SMALL: usize = 256;
/// The maximum size of a chunk that data is appended to, in bytes.
pub const READY_BYTES_JOINED: usize = 4_096;
/// The number of cookies that trigger an immediate hello in one dial; later hellos wait for their timer.
pub const COOKIES_MAX: u32 = 8;
/// The maximum number of out-of-order chunks in a receive buffer.
pub const OUT_OF_ORDER_MAX: usize = 4_096;
/// The maximum size of a send buffer, in bytes.
pub const SEND_BYTES_MAX: u64 = 4 << 20;
/// The maximum length of a circuit in each direction, in bytes: offsets have 48 bits on the wire.
pub const CIRCUIT_BYTES_MAX: u64 = (1 << 48) - 1;
/// The overhead that each chunk in a send buffer counts, in bytes, so that tiny chunks are bounded.
pub const CHUNK_BYTES: u64 = 64;

/// The minimum probe timeout (PTO).
pub const PROBE_TIMEOUT_MIN: Duration = Duration::from_millis(10);
/// The maximum probe timeout, unless the round-trip time is longer.
pub const PROBE_TIMEOUT_MAX: Duration = Duration::from_millis(100);
/// A path is dead after this many probe timeouts in a row.
pub const PROBES_MAX: u32 = 4;
/// The initial interval of probes on a dead path; it doubles.
pub const PROBE_WAIT_MIN: Duration = Duration::from_millis(50);
/// The maximum interval of probes on a dead path.
pub const PROBE_WAIT_MAX: Duration = Duration::from_secs(1);
/// The interval of keepalive probes on an idle path.
pub const KEEPALIVE: Duration = Duration::from_secs(1);
/// A group closes when nothing was received for this long.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// The period for which a closed group notifies its peer.
pub const CLOSING: Duration = Duration::from_millis(300);
/// The interval of these notifications.
pub const CLOSING_WAIT: Duration = Duration::from_millis(50);
/// The initial interval of handshake retransmissions; it doubles.
pub const HANDSHAKE_WAIT_MIN: Duration = Duration::from_millis(50);
/// The maximum interval of handshake retransmissions.
pub const HANDSHAKE_WAIT_MAX: Duration = Duration::from_millis(400);
/// The timeout of a handshake.
pub const HANDSHAKE_MAX: Duration = Duration::from_secs(5);
/// A dial fails after this many replies with an unexpected key.
pub const WRONG_PEERS_MAX: u32 = 3;
/// The minimum lifetime of a cookie; the maximum is twice that.
pub const COOKIE_LIFE: Duration = Duration::from_secs(30);

/// The minimum congestion window, and the window before the first rate sample. In packets.
pub const WINDOW_PACKETS_MIN: u64 = 32;
/// The maximum burst of a paced path after a delay, as a duration at the paced rate.
pub const BURST_MAX: Duration = Duration::from_millis(1);
/// The granularity of the pacing timer; packets within it are sent together.
pub const PACING_STEP: Duration = Duration::from_micros(100);
/// The initial reordering threshold of loss detection, in packets (RFC 9002, section 6.1.1).
pub const PACKET_THRESHOLD_MIN: u64 = 3;
/// The maximum reordering threshold, for a path with observed reordering. In packets.
pub const PACKET_THRESHOLD_MAX: u64 = 128;
/// The number of probes for each packet size.
pub const MTU_PROBES_MAX: u32 = 3;
/// A path falls back to base-size packets after this many consecutive losses of larger ones.
pub const LARGE_LOST_MAX: u32 = 6;
/// The pause of MTU discovery after it failed.
pub const MTU_RETRY_WAIT: Duration = Duration::from_secs(30);

const _: () = assert!(SENT_PACKETS_MAX < REPLAY_PACKETS, "packets in flight are never older than the window");
const _: () = assert!(PATHS_MAX <= 16, "a path number has 4 bits");
const _: () = assert!(GROUPS_MAX <= 256, "a group slot has 8 bits");
const _: () = assert!(CIRCUITS_MAX <= 1 << 12, "a circuit slot has 12 bits");
const _: () = assert!(HALF_OPEN_MAX < GROUPS_MAX, "pending handshakes never fill the table");
const _: () = assert!(REPLAY_PACKETS.is_multiple_of(64), "the window consists of whole words");
const _: () = assert!(PACING_STEP.as_nanos() < BURST_MAX.as_nanos(), "a burst covers the timer granularity");
const _: () = assert!(SEND_BYTES_MAX >= BULK_CREDIT_MAX, "a sender can use all of its credit");
