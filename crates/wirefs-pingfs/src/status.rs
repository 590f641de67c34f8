//! Status of a store.

use std::net::IpAddr;
use std::time::Duration;

use wirefs_blocks::id::BlockId;
use wirefs_echo::{Capacity, EchoCounters, HostId, HostState, MemoryBytes};

use crate::options::EchoOptions;
use crate::store::{EchoStore, unpacked};

/// Status of one host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostReport {
    /// The host.
    pub host: IpAddr,
    /// Whether the host answers.
    pub state: HostState,
    /// Whether its packets move to other hosts as they arrive.
    pub is_draining: bool,
    /// The current send rate in packets per second.
    pub rate: f64,
    /// The recent minimum RTT.
    pub rtt: Option<Duration>,
    /// The cycle time: RTT plus the wait in the receive buffer.
    pub cycle: Option<Duration>,
    /// Packets of blocks at the host.
    pub packets: u64,
    /// Maximum number of packets of blocks.
    pub packets_max: u64,
    /// Payload of those packets in bytes, estimated from the average received payload.
    pub bytes: u64,
    /// Packets of blocks that were lost.
    pub lost: u64,
    /// Received packets.
    pub received_packets: u64,
    /// Sent packets.
    pub sent_packets: u64,
    /// Packets discarded because the path MTU became too small.
    pub too_large: u64,
    /// Packets that the kernel dropped at the receive buffer; should be zero.
    pub dropped: u32,
    /// The largest payload that the host echoes, in bytes.
    pub payload_bytes: usize,
}

/// Status of a store.
#[derive(Clone, Debug)]
pub struct EchoStatus {
    /// Time since the store was opened.
    pub up: Duration,
    /// The options of the store.
    pub options: EchoOptions,
    /// The block size in bytes.
    pub block_bytes: usize,
    /// The hosts in the order in which they were named.
    pub hosts: Vec<HostReport>,
    /// Capacity and use.
    pub capacity: Capacity,
    /// Packet counts.
    pub counters: EchoCounters,
    /// Memory use.
    pub memory: MemoryBytes,
    /// Contents of recent and overheard blocks, in bytes.
    pub recent_bytes: usize,
    /// Number of blocks; `None` without an index.
    pub blocks: Option<u64>,
    /// Blocks lost and not recovered since the store was opened.
    pub blocks_lost: u64,
    /// Age of the oldest block; `None` if unknown.
    pub oldest: Option<Duration>,
    /// The reason why the store is broken.
    pub broken: Option<&'static str>,
}

impl EchoStore {
    /// Returns the status.
    ///
    /// # Cost
    /// Visits the id of each block.
    pub fn status(&self) -> EchoStatus {
        let core = self.shared().lock();
        let echo = &core.driver.echo;
        let paths = core.driver.paths.iter().enumerate();
        let hosts = paths.filter(|(_, path)| !path.is_gone).filter_map(|(number, path)| {
            let status = echo.status(HostId(number as u8))?;
            let traffic = path.traffic;
            let average = traffic.received_bytes.checked_div(traffic.received_packets).unwrap_or(0);
            Some(HostReport {
                host: path.survey.host,
                state: status.state,
                is_draining: status.is_draining,
                rate: status.rate,
                rtt: status.rtt_min,
                cycle: status.cycle,
                packets: status.packets,
                packets_max: status.packets_max,
                bytes: average * status.packets,
                lost: status.lost,
                received_packets: traffic.received_packets,
                sent_packets: traffic.sent_packets,
                too_large: traffic.too_large,
                dropped: path.socket.buffer_usage().map_or(0, |memory| memory.dropped),
                payload_bytes: path.survey.payload_bytes,
            })
        });
        let oldest: Option<BlockId> = echo.ids(None, 1).and_then(|ids| unpacked(*ids.first()?));
        EchoStatus {
            up: self.begun().elapsed(),
            options: self.options().clone(),
            block_bytes: self.block_bytes(),
            hosts: hosts.collect(),
            capacity: echo.capacity(),
            counters: echo.counters(),
            memory: echo.memory_bytes(),
            recent_bytes: core.recent.bytes() + core.overheard.bytes(),
            blocks: echo.block_count().map(|count| count as u64),
            blocks_lost: core.lost_count,
            oldest: oldest.and_then(|id| core.ages.registered(id)).map(|at| at.elapsed()),
            broken: core.broken,
        }
    }
}
