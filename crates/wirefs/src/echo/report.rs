//! The output of `wirefs echo status --json`. Its fields are stable; new ones may be added.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use wirefs_echo::{HostState, Redundancy};
use wirefs_pingfs::options::KeepOption;
use wirefs_pingfs::{EchoStatus, HostReport};

use super::SERVED;
use super::ending::Plan;
use super::nodes::Nodes;

/// The state of a store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct EchoReport {
    pub(crate) up_ms: u64,
    pub(crate) hosts: Vec<Host>,
    /// `copies 2`, or `code 4+2`.
    pub(crate) redundancy: String,
    /// `index` or `root`.
    pub(crate) keep: String,
    pub(crate) block_bytes: u64,
    /// Existing blocks; none with `--keep=root`.
    pub(crate) blocks: Option<u64>,
    pub(crate) blocks_lost: u64,
    /// The capacity in blocks, and its free part.
    pub(crate) blocks_max: u64,
    pub(crate) blocks_free: u64,
    /// The capacity in packets, and the part of it in receive buffers instead of the network.
    pub(crate) packets_max: u64,
    pub(crate) parked_max: u64,
    /// The age of the oldest block in circulation.
    pub(crate) oldest_ms: Option<u64>,
    pub(crate) circulated: u64,
    pub(crate) launched: u64,
    pub(crate) ballast: u64,
    /// Packets rebuilt after a loss.
    pub(crate) rebuilt: u64,
    /// Packets considered lost that arrived later.
    pub(crate) late: u64,
    pub(crate) refused: Refused,
    pub(crate) memory: Memory,
    /// The fate of the data at unmount.
    pub(crate) ending: Plan,
    /// The nodes that share the tree; none without other nodes.
    #[serde(default)]
    pub(crate) nodes: Option<Nodes>,
    /// The reason why the store has failed.
    pub(crate) broken: Option<String>,
}

/// Rejected packets, by reason.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Refused {
    pub(crate) forged: u64,
    pub(crate) replayed: u64,
    pub(crate) dropped: u64,
    pub(crate) foreign: u64,
    pub(crate) other: u64,
}

/// Bytes in memory.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Memory {
    pub(crate) index: u64,
    /// Contents waiting to be sent.
    pub(crate) outbox: u64,
    /// Contents being assembled for a waiting reader, or requested within the last two round trips.
    pub(crate) gathered: u64,
}

/// One host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Host {
    pub(crate) host: String,
    /// `unknown`, `answering`, `silent` or `draining`.
    pub(crate) standing: String,
    pub(crate) rtt_us: Option<u64>,
    /// The time from sending a packet to sending it again.
    pub(crate) lap_us: Option<u64>,
    /// The maximum rate, in packets per second.
    pub(crate) rate: u64,
    pub(crate) packets: u64,
    pub(crate) packets_max: u64,
    /// Payload in flight, approximately.
    pub(crate) bytes: u64,
    pub(crate) lost: u64,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) too_large: u64,
    /// Dropped by the kernel because the receive buffer was full.
    pub(crate) dropped: u64,
    pub(crate) payload_bytes: u64,
}

impl Host {
    fn of(report: &HostReport) -> Host {
        let standing = match (report.state, report.is_draining) {
            (HostState::Silent, _) => "silent",
            (HostState::Unknown | HostState::Answering, true) => "draining",
            (HostState::Unknown, false) => "unknown",
            (HostState::Answering, false) => "answering",
        };
        Host {
            host: report.host.to_string(),
            standing: standing.to_owned(),
            rtt_us: report.rtt.map(us),
            lap_us: report.cycle.map(us),
            rate: report.rate as u64,
            packets: report.packets,
            packets_max: report.packets_max,
            bytes: report.bytes,
            lost: report.lost,
            sent: report.sent_packets,
            received: report.received_packets,
            too_large: report.too_large,
            dropped: u64::from(report.dropped),
            payload_bytes: report.payload_bytes as u64,
        }
    }
}

impl EchoReport {
    /// Returns the status of this process's store; `None` if it has none.
    pub(crate) fn here() -> Option<EchoReport> {
        let served = SERVED.get()?;
        let nodes = served.nodes.as_ref().map(|nodes| Nodes::of(&nodes.nodes()));
        Some(EchoReport { nodes, ..EchoReport::of(&served.store.status(), served.ending.plan()) })
    }

    fn of(status: &EchoStatus, ending: Plan) -> EchoReport {
        let EchoStatus { capacity, counters, memory, .. } = status;
        let refused = counters.refused;
        let redundancy = match status.options.redundancy {
            Redundancy::Copies(copies) => format!("copies {copies}"),
            Redundancy::Code { pieces, extra } => format!("code {pieces}+{extra}"),
        };
        let keep = match status.options.keep {
            KeepOption::Index => "index",
            KeepOption::Root => "root",
        };
        EchoReport {
            up_ms: ms(status.up),
            hosts: status.hosts.iter().map(Host::of).collect(),
            redundancy,
            keep: keep.to_owned(),
            block_bytes: status.block_bytes as u64,
            blocks: status.blocks,
            blocks_lost: status.blocks_lost,
            blocks_max: capacity.blocks_max(),
            blocks_free: capacity.packets_free / capacity.packets_per_block.max(1),
            packets_max: capacity.packets_max,
            parked_max: capacity.parked_max,
            oldest_ms: status.oldest.map(ms),
            circulated: counters.circulated,
            launched: counters.launched,
            ballast: counters.probes,
            rebuilt: counters.rebuilt,
            late: counters.late,
            refused: Refused {
                forged: refused.forged,
                replayed: refused.replayed,
                dropped: refused.dropped,
                foreign: refused.foreign,
                other: refused.too_short + refused.misplaced + refused.malformed + refused.stale,
            },
            memory: Memory {
                index: memory.index as u64,
                outbox: memory.send_queue as u64,
                gathered: (memory.collected + status.recent_bytes) as u64,
            },
            ending,
            nodes: None,
            broken: status.broken.map(str::to_owned),
        }
    }
}

fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn us(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
