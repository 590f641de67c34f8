//! What a store does, for people and programs.

use std::net::IpAddr;
use std::time::Duration;

use wirefs_blocks::id::BlockId;
use wirefs_echo::{Capacity, Counters, HostId, MemoryBytes, Standing};

use crate::options::EchoOptions;
use crate::store::{EchoStore, unpacked};

/// What is known of one host, and under way to it.
#[derive(Clone, Debug, PartialEq)]
pub struct HostReport {
    /// The host.
    pub host: IpAddr,
    /// Whether it answers.
    pub standing: Standing,
    /// Whether its packets go to the others as they come.
    pub is_draining: bool,
    /// Packets a second that it is sent at most.
    pub rate: f64,
    /// There and back at best, lately.
    pub rtt: Option<Duration>,
    /// From sending a packet to sending it again, the wait in the receive buffer included.
    pub lap: Option<Duration>,
    /// Packets of blocks that belong there.
    pub packets: u64,
    /// Packets of blocks that it is given at most.
    pub packets_max: u64,
    /// Their payload, in bytes, by the average of those that came.
    pub bytes: u64,
    /// Packets of blocks that went missing.
    pub lost: u64,
    /// Packets that came back.
    pub received_packets: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets given up because the way became too narrow for them.
    pub too_large: u64,
    /// Packets that the kernel dropped at the receive buffer; it should stay zero.
    pub dropped: u32,
    /// The payload that it was found to echo whole, in bytes.
    pub payload_bytes: usize,
}

/// What a store does.
#[derive(Clone, Debug)]
pub struct EchoStatus {
    /// How long it has been open.
    pub up: Duration,
    /// What it was made from.
    pub options: EchoOptions,
    /// The bytes of a block.
    pub block_bytes: usize,
    /// Each host, in the order in which they were named.
    pub hosts: Vec<HostReport>,
    /// What fits, and what is there.
    pub capacity: Capacity,
    /// Packets by what became of them.
    pub counters: Counters,
    /// The memory that it takes.
    pub memory: MemoryBytes,
    /// Contents that just came by for a reader or while one waited, in bytes.
    pub recent_bytes: usize,
    /// Blocks that it has; none where it does not know.
    pub blocks: Option<u64>,
    /// Blocks lost and not found again, since it was opened.
    pub blocks_lost: u64,
    /// For how long the oldest block has been going round; none where it does not know.
    pub oldest: Option<Duration>,
    /// Why it works no more.
    pub broken: Option<&'static str>,
}

impl EchoStore {
    /// What it does now.
    ///
    /// # Cost
    /// Looks at the id of each block.
    pub fn status(&self) -> EchoStatus {
        let core = self.shared().lock();
        let echo = &core.circuit.echo;
        let ways = core.circuit.ways.iter().enumerate();
        let hosts = ways.filter(|(_, way)| !way.is_gone).filter_map(|(number, way)| {
            let status = echo.status(HostId(number as u8))?;
            let traffic = way.traffic;
            let average = traffic.received_bytes.checked_div(traffic.received_packets).unwrap_or(0);
            Some(HostReport {
                host: way.survey.host,
                standing: status.standing,
                is_draining: status.is_draining,
                rate: status.rate,
                rtt: status.way,
                lap: status.lap,
                packets: status.packets,
                packets_max: status.packets_max,
                bytes: average * status.packets,
                lost: status.lost,
                received_packets: traffic.received_packets,
                sent_packets: traffic.sent_packets,
                too_large: traffic.too_large,
                dropped: way.socket.memory().map_or(0, |memory| memory.dropped),
                payload_bytes: way.survey.payload_bytes,
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
