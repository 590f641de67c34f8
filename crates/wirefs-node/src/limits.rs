//! Limits and intervals of the membership protocol.

use std::time::Duration;

/// Nodes in a table, this one and dead ones included.
pub const NODES_MAX: usize = 256;
/// Bytes of a packet: below the usual MTU, with room for tunnel headers.
pub const PACKET_BYTES_MAX: usize = 1_200;
/// Bytes of a node's name.
pub const NAME_BYTES_MAX: usize = 63;
/// Addresses of a node.
pub const ADDRESSES_MAX: usize = 4;
/// Exports of a node.
pub const EXPORTS_MAX: usize = 2;
/// Cards over which a node answers Ethernet packets.
pub const CARDS_MAX: usize = 4;
/// Bytes of a signed record.
pub const RECORD_BYTES_MAX: usize = 480;
/// Configured peers on other segments.
pub const PEERS_MAX: usize = 64;
/// Addresses from a registry.
pub const REGISTERED_MAX: usize = NODES_MAX * ADDRESSES_MAX;
/// Indirect probes at a time; further requests are ignored.
pub(crate) const INDIRECT_PROBES_MAX: usize = 64;
/// Updates in dissemination, at most one for each node.
pub(crate) const GOSSIP_MAX: usize = NODES_MAX;
/// Packets in the output queue; further ones are dropped. Other outputs are never dropped.
pub(crate) const PACKETS_MAX: usize = 4_096;
/// A node gives its name up on a conflict until this long after it met the first other node.
pub const SETTLING: Duration = Duration::from_secs(2);
/// The same, while the node has met no other: nodes with its name may be slow to answer.
pub const SETTLING_WITHOUT_PEERS: Duration = Duration::from_secs(10);
/// Interval of announcements.
pub const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of announcements while a node is new.
pub const ANNOUNCE_INTERVAL_NEW: Duration = Duration::from_millis(200);
/// Interval of table pulls from a random node.
pub const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum interval between updates of load and free space.
pub const LOAD_INTERVAL: Duration = Duration::from_secs(5);
/// How long a dead node is remembered, so that old packets do not revive it.
pub const DEAD_KEPT: Duration = Duration::from_secs(3_600);
/// Minimum interval between notifications to a node about its own state.
pub(crate) const NOTIFY_INTERVAL: Duration = Duration::from_millis(200);
/// Minimum interval between broadcasts of a refutation.
pub(crate) const REFUTE_INTERVAL_MIN: Duration = Duration::from_millis(100);
/// A call that comes this long after its deadline means that this machine was stalled; silence of other nodes meanwhile
/// does not count.
pub(crate) const STALL_MIN: Duration = Duration::from_millis(100);

/// How long an invitation is good.
pub const INVITATION_TIME: Duration = Duration::from_secs(600);
/// The wrong codes that end an invitation.
pub const INVITATION_TRIES: u8 = 3;

const _: () = assert!(
    PACKET_BYTES_MAX >= 2 * RECORD_BYTES_MAX + 200,
    "a packet carries its sender's record and another, header and signature"
);
