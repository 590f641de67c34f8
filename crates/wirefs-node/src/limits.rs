//! Every limit of the table of nodes, named once.

use std::time::Duration;

/// Nodes that a table has, this one and dead ones included.
pub const NODES_MAX: usize = 256;
/// Bytes of a packet: less than what each network carries whole, with room for tunnels.
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
/// Peers on other segments that are named by hand.
pub const PEERS_MAX: usize = 64;
/// Addresses that a registry may tell.
pub const REGISTERED_MAX: usize = NODES_MAX * ADDRESSES_MAX;
/// Probes that are made for others at a time; more are not made.
pub(crate) const FAVOURS_MAX: usize = 64;
/// Updates that wait to be passed on, one for each node.
pub(crate) const GOSSIP_MAX: usize = NODES_MAX;
/// Packets that wait to be taken; what does not fit is lost. What is to be known here is never lost.
pub(crate) const PACKETS_MAX: usize = 4_096;
/// How long after a node met the first other it gives way when its name turns out to be taken.
pub const SETTLING: Duration = Duration::from_secs(2);
/// How long it does that after its start while it meets nobody: those that have its name may be slow.
pub const SETTLING_ALONE: Duration = Duration::from_secs(10);
/// Between two announcements.
pub const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(1);
/// Between two announcements while a node is new.
pub const ANNOUNCE_INTERVAL_NEW: Duration = Duration::from_millis(200);
/// Between two looks at another's table.
pub const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// Load and free space are told anew no more often.
pub const FIGURES_INTERVAL: Duration = Duration::from_secs(5);
/// How long a node that is dead is remembered, so that old packets do not bring it back.
pub const DEAD_KEPT: Duration = Duration::from_secs(3_600);
/// Between two words to a node that does not know yet that it counts as dead.
pub(crate) const TELL_INTERVAL: Duration = Duration::from_millis(200);
/// Between two times that a node tells all others that it lives, whatever is said of it meanwhile.
pub(crate) const REFUTE_INTERVAL: Duration = Duration::from_millis(100);
/// When this machine runs so late, it did not run: whoever was silent meanwhile is not to blame.
pub(crate) const STALL: Duration = Duration::from_millis(100);

const _: () = assert!(
    PACKET_BYTES_MAX >= 2 * RECORD_BYTES_MAX + 200,
    "a packet carries its sender's record and another, head and signature"
);
