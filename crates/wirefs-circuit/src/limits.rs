//! Every limit of circuits, named once.

use std::time::Duration;

/// Cards of one node.
pub const CARDS_MAX: usize = 8;
/// Paths of one group; a path's number has 4 bits in each packet.
pub const PATHS_MAX: usize = 8;
/// Groups of one node, those that are still being made included; a group's slot has a byte on the wire.
pub const GROUPS_MAX: usize = 256;
/// Circuits that each side of a group may have open at once.
pub const CIRCUITS_MAX: usize = 256;
/// Groups that strangers may have half open at once.
pub const HALF_OPEN_MAX: usize = 64;
/// From so many half open ones on, a stranger has to show that it receives at its address.
pub const HALF_OPEN_FREE: usize = 16;
/// Half open groups of one address.
pub const HALF_OPEN_PER_ADDRESS_MAX: usize = 4;
/// Key pairs that wait to be used up by handshakes.
pub const KEYS_MAX: usize = 32;

/// The largest packet, in bytes behind the Ethernet header: jumbo frames as most cards have them.
pub const PACKET_BYTES_MAX: usize = 9_216;
/// The payload of Ethernet that each card carries, in bytes.
pub const PACKET_BYTES_PLAIN: usize = 1_500;
/// The least that a card may carry, in bytes.
pub const CARD_BYTES_MIN: usize = 576;
/// The least payload of Ethernet, in bytes: shorter ones are filled up before they are sealed, since a card would do it
/// behind the seal.
pub const PACKET_BYTES_MIN: usize = 46;

/// Packets behind the newest of a path that are still told from replayed ones.
pub const REPLAY_PACKETS: usize = 4_096;
/// Packets of one path that are under way and not acknowledged.
pub const FLIGHT_PACKETS_MAX: usize = 4_000;
/// Runs of packets that one acknowledgement tells.
pub const ACK_RUNS_MAX: usize = 32;
/// Things in one packet that must be sent again when it is lost.
pub const CONTENTS_MAX: usize = 8;
/// Packets that are acknowledged together when they arrive in order.
pub const ACK_EVERY: u32 = 8;
/// The longest time for which an acknowledgement waits for company.
pub const ACK_DELAY_MAX: Duration = Duration::from_millis(1);

/// Bytes that a circuit may send before its receiver granted any.
pub const CREDIT_FIRST: u64 = 32 << 10;
/// Bytes that the receiver of a request circuit holds at most.
pub const REQUEST_CREDIT_MAX: u64 = 256 << 10;
/// Bytes that the receiver of a bulk circuit holds at most.
pub const BULK_CREDIT_MAX: u64 = 4 << 20;
/// Bytes that one group grants beyond the first credit of each circuit, in all.
pub const CREDIT_POOL: u64 = 32 << 20;
/// What a group has to tell its peer about circuits and did not send yet: several things of each circuit.
pub const NOTICES_MAX: usize = 8 * CIRCUITS_MAX;
/// Data that arrives in smaller pieces than this is put behind what is ready already, in bytes.
pub const READY_BYTES_SMALL: usize = 256;
/// Up to this size, in bytes.
pub const READY_BYTES_JOINED: usize = 4_096;
/// Hellos that one dial sends at once because it was given a cookie; later ones wait for their time.
pub const COOKIES_MAX: u32 = 8;
/// Pieces that a circuit keeps because an earlier one is missing.
pub const PIECES_MAX: usize = 4_096;
/// Bytes that a circuit takes from its user and still has to send or to see acknowledged.
pub const SEND_BYTES_MAX: u64 = 4 << 20;
/// Bytes that one circuit carries each way in its life: offsets have 48 bits on the wire.
pub const CIRCUIT_BYTES_MAX: u64 = (1 << 48) - 1;
/// What each chunk of a user counts beside its bytes, so that tiny ones are bounded too.
pub const CHUNK_BYTES: u64 = 64;

/// The shortest wait before a path that does not acknowledge is asked again.
pub const PATIENCE_MIN: Duration = Duration::from_millis(10);
/// The longest such wait.
pub const PATIENCE_MAX: Duration = Duration::from_millis(100);
/// Questions without an answer after which a path counts as dead.
pub const DOUBTS_MAX: u32 = 4;
/// The wait between two questions to a dead path, at first.
pub const PROBE_WAIT_MIN: Duration = Duration::from_millis(50);
/// The wait between two questions to a dead path, at last.
pub const PROBE_WAIT_MAX: Duration = Duration::from_secs(1);
/// A path on which nothing was asked for so long is asked whether it lives.
pub const KEEPALIVE: Duration = Duration::from_secs(1);
/// A peer from which nothing was heard for so long is gone.
pub const SILENCE_MAX: Duration = Duration::from_secs(10);
/// How long a closed group goes on telling its peer so.
pub const CLOSING: Duration = Duration::from_millis(300);
/// The wait between two tellings of that.
pub const CLOSING_WAIT: Duration = Duration::from_millis(50);
/// The wait before a handshake message is sent again, at first; it doubles.
pub const HANDSHAKE_WAIT_MIN: Duration = Duration::from_millis(50);
/// The wait before a handshake message is sent again, at last.
pub const HANDSHAKE_WAIT_MAX: Duration = Duration::from_millis(400);
/// How long a handshake may take.
pub const HANDSHAKE_MAX: Duration = Duration::from_secs(5);
/// Answers of somebody else than who was dialled, after which the dial fails.
pub const STRANGERS_MAX: u32 = 3;
/// How long a cookie is good at least; at most twice that.
pub const COOKIE_LIFE: Duration = Duration::from_secs(30);

/// Packets that a path may have under way before its rate was measured, and at least whatever its rate.
pub const WINDOW_PACKETS_MIN: u64 = 32;
/// The most that a paced path sends at once to catch up, as the time that it lost.
pub const BURST_MAX: Duration = Duration::from_millis(1);
/// How much later than its next packet may leave a paced path is looked at: what gathered leaves together.
pub const PACE_STEP: Duration = Duration::from_micros(100);
/// Packets that may overtake one before it counts as lost, at first.
pub const OVERTAKING_MIN: u64 = 3;
/// Packets that may overtake one before it counts as lost, on a path that was seen to reorder.
pub const OVERTAKING_MAX: u64 = 128;
/// Tries of each packet size on a path that may carry larger packets.
pub const SIZE_TRIES: u32 = 3;
/// Larger packets that are lost in a row, while none arrives, after which a path counts as one that carries them no more.
pub const LARGE_LOST_MAX: u32 = 6;
/// How long a path is left alone after larger packets failed on it.
pub const SIZE_WAIT: Duration = Duration::from_secs(30);

const _: () =
    assert!(FLIGHT_PACKETS_MAX < REPLAY_PACKETS, "what is under way is never older than the window");
const _: () = assert!(PATHS_MAX <= 16, "a path's number has 4 bits");
const _: () = assert!(GROUPS_MAX <= 256, "a group's slot has 8 bits");
const _: () = assert!(CIRCUITS_MAX <= 1 << 12, "a circuit's slot has 12 bits");
const _: () = assert!(HALF_OPEN_MAX < GROUPS_MAX, "strangers never fill the table");
const _: () = assert!(REPLAY_PACKETS.is_multiple_of(64), "the window consists of whole words");
const _: () = assert!(PACE_STEP.as_nanos() < BURST_MAX.as_nanos(), "what gathered may be caught up");
const _: () = assert!(SEND_BYTES_MAX >= BULK_CREDIT_MAX, "a sender can use all credit that it is given");
