//! The limits of the running store.

use std::time::Duration;

/// Default number of parked packets of a near host: packets that may wait in the receive buffer.
pub const PARKED_PACKETS: u64 = 4_096;
/// Default number of parked packets of a far host: a tree needs some room before the rate is known, and on
/// paths of a few milliseconds.
pub const PARKED_PACKETS_FAR: u64 = 256;
/// Packets of network capacity for which the store probes before the first block.
pub const GOAL_PACKETS: u64 = 4_096;
/// A host with a shorter RTT is near: the path to it holds almost nothing, so its packets wait in the receive
/// buffer.
pub const NEAR: Duration = Duration::from_millis(1);
/// Default receive buffer of one host in bytes. A limit; no memory is reserved.
pub const BUFFER_BYTES: usize = 64 << 20;
/// Default maximum payload of an echo packet in bytes, for Ethernet.
pub const PAYLOAD_BYTES: usize = 1_472;
/// Default maximum rate to one host in packets per second.
pub const RATE_MAX: u32 = 10_000;
/// Default maximum rate to a loopback host in packets per second.
pub const RATE_MAX_LOOPBACK: u32 = 1_000_000;
/// Packets per second that the keeper takes from a near host while no caller waits. The others stay in the
/// receive buffer.
pub const IDLE_RATE: u32 = wirefs_echo::limits::BUSY_RATE;
/// Time without a request after which the store is quiet, and the keeper polls near hosts more slowly.
pub const QUIET_AFTER: Duration = Duration::from_secs(1);
/// The smallest number of packets per second that the keeper takes from a near host while the store is quiet.
pub const QUIET_RATE: u32 = 1_000;
/// The longest cycle time while the store is quiet, in seconds; the keeper exceeds `QUIET_RATE` if needed.
pub const QUIET_CYCLE_SECS: u64 = 2;
/// The shortest pause of the keeper while the store is quiet.
pub const QUIET_PAUSE_MIN: Duration = Duration::from_millis(50);
/// The shortest pause of the keeper with near hosts.
pub const KEEPER_PAUSE_MIN: Duration = Duration::from_millis(1);
/// How long the keeper pauses while callers poll.
pub const KEEPER_BACKOFF: Duration = Duration::from_millis(1);
/// Packets of a near host that a waiting caller takes first; doubled with each poll.
pub const NEXT_PACKETS: usize = 4;
/// Packets of a near host that a caller peeks at before any is sent again.
pub const PEEK_PACKETS: usize = 16;
/// How long a call spins for a lock before it announces a wait. A thread switch takes as long.
pub const SPIN_MAX: Duration = Duration::from_micros(30);
/// The longest wait of a polling caller.
pub const WAIT_MAX: Duration = Duration::from_millis(20);
/// The longest wait of one of several polling callers, since one may take the packet that another waits for.
pub const SHARED_WAIT_MAX: Duration = Duration::from_millis(1);
/// How long a retrieval waits for a block that counts as lost, which may only be late.
pub const LATE_GRACE: Duration = Duration::from_secs(1);
/// How long a retrieval waits for a block whose hosts neither answer nor count as silent.
pub const RETRIEVE_WAIT: Duration = Duration::from_secs(30);
/// How long a caller waits for room while the capacity may grow.
pub const ROOM_WAIT: Duration = Duration::from_secs(3);
/// How long a caller waits for room while no host answers, which may only be delayed.
pub const SILENCE_WAIT: Duration = Duration::from_secs(20);
/// How long opening a store waits for the first host to answer.
pub const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// How long opening a store measures the hosts' rates before there are blocks.
pub const SEARCH_WAIT: Duration = Duration::from_secs(1);
/// How long [`sync`](wirefs_blocks::store::BlockStore::sync) waits for new blocks to be sent.
pub const SYNC_WAIT: Duration = Duration::from_secs(10);
/// How long the survey of a host waits for a reply.
pub const SURVEY_TIMEOUT: Duration = Duration::from_secs(1);
/// Full-size packets that a survey sends to a host.
pub const SURVEY_PACKETS: usize = 20;
/// Interval between the packets of a survey.
pub const SURVEY_STEP: Duration = Duration::from_millis(2);
/// The largest acceptable loss in a survey.
pub const SURVEY_LOSS_MAX: f64 = 0.5;
/// Cycles for which a block that arrived for a reader is kept: the next needed block may just have passed, and blocks
/// that were requested ahead arrive in any order within a cycle.
pub const RECENT_CYCLES: u32 = 2;
/// The shortest time for which such a block is kept: the duration of the calls of one file read.
pub const RECENT_MIN: Duration = Duration::from_millis(1);
/// The longest time. While the store is quiet, cycles are longer than those that a reader meets.
pub const RECENT_MAX: Duration = Duration::from_secs(1);
/// File data that is requested ahead of a reader in bytes.
pub const READ_AHEAD_BYTES: u64 = 4 << 20;
/// How long a block that was requested ahead waits for its reader.
pub const READ_AHEAD_TIME: Duration = Duration::from_secs(1);
/// Contents of blocks that arrived for a reader in bytes: those requested ahead, and those of the read before.
pub const RECENT_BYTES_MAX: usize = 6 << 20;
/// A block missing for this long is gone: no packet lives longer (RFC 9293 uses two minutes).
pub const GONE_AFTER: Duration = Duration::from_secs(120);
/// Missing blocks whose times are recorded.
pub const MISSING_BLOCKS_MAX: usize = 65_536;
/// Contents of blocks overheard while a caller waited, in bytes.
pub const OVERHEARD_BYTES_MAX: usize = 1 << 20;
/// Blocks fetched at once when a tree is saved.
pub const SAVE_BATCH: usize = 256;
/// Marks of registration times; more marks are merged in pairs.
pub const AGES_MAX: usize = 256;
/// Packets in flight to one host that a store without an index (`--keep=root`) can tell from replays.
pub const WINDOW_PACKETS: usize = 1 << 20;
/// Attempts to store a block of another node.
pub const ACCEPT_TRIES_MAX: usize = 8;
/// Interval of heartbeats between nodes.
pub const HEARTBEAT: Duration = Duration::from_millis(250);
/// The shortest interval of retransmissions between nodes.
pub const RETRY_MIN: Duration = Duration::from_millis(100);
/// The longest interval of retransmissions between nodes.
pub const RETRY_MAX: Duration = Duration::from_secs(1);
/// Silence after which a node is removed.
pub const DEAD_AFTER: Duration = Duration::from_secs(5);
/// How long a node looks for others before it creates a tree.
pub const DISCOVERY_WAIT: Duration = Duration::from_secs(3);
/// How long a joining node waits for all blocks of the others.
pub const JOIN_WAIT: Duration = Duration::from_secs(120);
/// How long a leaving node waits for the others to accept.
pub const LEAVE_WAIT: Duration = Duration::from_secs(15);
/// How long a change waits for the write token, or for the other nodes to accept its root.
pub const TRANSACTION_WAIT: Duration = Duration::from_secs(60);
/// The same after a change that timed out: later changes have already waited behind it.
pub const TRANSACTION_WAIT_CUT_OFF: Duration = Duration::from_secs(5);
/// How long a retrieval waits for the other nodes' copies of a block lost here.
pub const COPY_WAIT: Duration = Duration::from_secs(3);
/// The receive buffer for control packets in bytes.
pub const CONTROL_BUFFER_BYTES: usize = 16 << 20;
/// Control packets processed before the replica's lock is released.
pub const CONTROL_BATCH_MAX: usize = 256;
/// Tombstones of blocks deleted on request of another node: late copies of them are rejected.
pub const TOMBSTONES_MAX: usize = 65_536;
/// Freed blocks to be announced with the next root.
pub const FREED_MAX: usize = 65_536;
/// Requests for copies that wait.
pub const COPIES_MAX: usize = 64;
/// Blocks fetched at once to be copied to another node.
pub const COPY_BATCH: usize = 64;

const _: () =
    assert!(HEARTBEAT.as_millis() * 10 <= DEAD_AFTER.as_millis(), "a dead node missed many heartbeats");
const _: () =
    assert!(RETRY_MAX.as_millis() * 4 < DEAD_AFTER.as_millis(), "several retransmissions fit in the timeout");
const _: () =
    assert!(READ_AHEAD_BYTES < RECENT_BYTES_MAX as u64, "blocks requested ahead stay until they are read");
const _: () = assert!(WAIT_MAX.as_millis() < 500, "a polling caller never counts as stopped");
