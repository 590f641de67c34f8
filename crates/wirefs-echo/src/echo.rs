//! The state machine of the store.
//!
//! ```text
//!                store, drop, fetch                     poll: Fetched, Missing, Lost, Recovered, Silent, Answers
//!                       |                                    ^
//!   receive ──> open ── in flight? ──> wanted? damaged? ─────┘
//!   (packet)      |          |              |        \
//!              refused    refused       too close     seal ──> Resend (same buffer)
//!                                       to a copy
//!                                           |
//!                                       send queue ──(when due)──> poll_packet
//! ```
//!
//! The states of one packet of a block in the index:
//!
//! | state | becomes | when |
//! |---|---|---|
//! | `Queued` (in the send queue) | `InFlight` | it is due, and the host's rate allows it |
//! | `InFlight` | `InFlight`, with a new number | it comes back and is sent again in the same buffer |
//! | | `Queued` | it comes back too close behind another copy, and is held |
//! | | `Overdue` | packets sent well after it came back, or the buffer stayed empty for too long after it |
//! | `Overdue` | `InFlight` | it arrives after all |
//! | | `Queued` | it was rebuilt from other packets of the block, or from the cache |
//!
//! A block with too few packets that are not overdue is reported as lost. If one of them arrives later, the
//! block is reported as recovered.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use wirefs_op::Time;

use crate::block::EchoBlockId;
use crate::clock::Clock;
use crate::config::{ConfigError, EchoConfig, Keep};
use crate::counters::{Capacity, EchoCounters, MemoryBytes};
use crate::dropped::DroppedBlocks;
use crate::host::{Host, HostId, HostStatus};
use crate::index::Index;
use crate::packet::OVERHEAD_BYTES;
use crate::piece_collector::PieceCollector;
use crate::ram::Ram;
use crate::rate::SendRate;
use crate::redundancy::Shape;
use crate::seal::Sealer;
use crate::window::PacketWindow;

mod drain;
mod drop_block;
mod fetch;
mod listing;
mod placement;
mod receive;
mod repair;
mod send;
mod store_block;
mod timers;

pub use send::WrittenPacket;
pub use store_block::SyncPoint;

/// The result of receiving a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveVerdict {
    /// The packet was sealed again in place. Send it to the same host with this number in its ICMP header.
    Resend(u16),
    /// The packet is not sent again.
    Absorb,
}

/// An event for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EchoOutput {
    /// A requested block arrived.
    Fetched {
        /// The block.
        id: EchoBlockId,
        /// Its contents.
        block: Bytes,
    },
    /// A block passed while the driver [overhears](Echo::overhear). No fetch requested it.
    Passed {
        /// The block.
        id: EchoBlockId,
        /// Its contents.
        block: Bytes,
    },
    /// A requested block does not exist.
    Missing {
        /// The block.
        id: EchoBlockId,
    },
    /// Too few packets of a block are left. The block stays known until it is dropped, because it may
    /// recover.
    Lost {
        /// The block.
        id: EchoBlockId,
    },
    /// Enough packets of a lost block arrived after all.
    Recovered {
        /// The block.
        id: EchoBlockId,
    },
    /// A host stopped answering.
    Silent {
        /// The host.
        host: HostId,
    },
    /// A host began to answer.
    Answers {
        /// The host.
        host: HostId,
    },
}

/// The reason why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EchoRefusal {
    /// The hosts have no capacity left (ENOSPC).
    NoSpace {
        /// Whether the capacity may grow soon.
        may_grow: bool,
    },
    /// The block is too large.
    TooLarge {
        /// The largest size in bytes.
        bytes_max: usize,
    },
    /// A block with this id exists.
    Exists,
    /// Too many requests or packets are queued. Retry when packets were sent or fetches finished.
    Busy,
}

/// The hosts preferred for a block, by their RTT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distance {
    /// Hosts with the most room.
    #[default]
    Any,
    /// Near hosts: short reads, more packets a second.
    Near,
    /// Far hosts: long reads, fewer packets a second.
    Far,
}

/// The records of blocks.
#[derive(Debug)]
enum BlockRecords {
    Index(Index),
    RootOnly(RootOnlyRecords),
}

/// The records of a store without an index.
#[derive(Debug)]
struct RootOnlyRecords {
    /// The packets in flight to each host.
    windows: Vec<PacketWindow>,
    dropped: DroppedBlocks,
    /// Requested blocks, each with the deadline of its fetch.
    wanted: BTreeMap<EchoBlockId, Time>,
    /// Blocks seen since the listing began.
    listed: Option<BTreeSet<EchoBlockId>>,
}

/// A block store whose medium is echo packets in flight.
#[derive(Debug)]
pub struct Echo {
    shape: Shape,
    /// The rate of hosts without a rate of their own.
    rate: SendRate,
    /// The window size in packets of a store without an index.
    window_packets: usize,
    piece_bytes_max: usize,
    sealer: Sealer,
    clock: Clock,
    hosts: Vec<Host>,
    records: BlockRecords,
    /// Number of blocks with a pending fetch.
    wanted_count: usize,
    /// Whether blocks without a pending fetch are reported as they pass.
    is_overhearing: bool,
    collector: PieceCollector,
    ram: Ram,
    outputs: VecDeque<EchoOutput>,
    /// Number of blocks stored since the store was created.
    stored_count: u64,
    counters: EchoCounters,
    /// When the next timer tick is due, in the store's time.
    tick_at: Time,
    ticked: Time,
    /// Buckets of the index still to be searched for overdue packets.
    sweep_left: usize,
    /// Whether a cached block could not be repaired because no host had room.
    is_unrepaired: bool,
}

impl Echo {
    /// Creates an empty store. The store first probes the hosts, and accepts blocks when they answer.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn new(config: &EchoConfig) -> Result<Echo, ConfigError> {
        let shape = config.check()?;
        let sealer = Sealer::new(config.cipher, &config.key, config.origin).ok_or(ConfigError::Key)?;
        let hosts = config.hosts.iter().enumerate();
        let hosts = hosts.map(|(number, host)| Host::new(HostId(number as u8), *host, config.rate)).collect();
        let records = match config.keep {
            Keep::Index => BlockRecords::Index(Index::new(shape.lanes)),
            Keep::Root { window_packets } => BlockRecords::RootOnly(RootOnlyRecords {
                windows: config.hosts.iter().map(|_| PacketWindow::new(window_packets)).collect(),
                dropped: DroppedBlocks::default(),
                wanted: BTreeMap::new(),
                listed: None,
            }),
        };
        Ok(Echo {
            shape,
            rate: config.rate,
            window_packets: match config.keep {
                Keep::Index => 0,
                Keep::Root { window_packets } => window_packets,
            },
            piece_bytes_max: config.piece_bytes_max(),
            sealer,
            clock: Clock::default(),
            hosts,
            records,
            wanted_count: 0,
            is_overhearing: false,
            collector: PieceCollector::new(shape),
            ram: Ram::new(config.ram_bytes),
            outputs: VecDeque::new(),
            stored_count: 0,
            counters: EchoCounters::default(),
            tick_at: Time::default(),
            ticked: Time::default(),
            sweep_left: 0,
            is_unrepaired: false,
        })
    }

    /// Returns the size of the largest block in bytes.
    pub fn block_bytes_max(&self) -> usize {
        self.shape.block_bytes_max(self.piece_bytes_max)
    }

    /// Returns the size of the largest echo payload that the store sends, in bytes.
    pub fn packet_bytes_max(&self) -> usize {
        self.piece_bytes_max + OVERHEAD_BYTES
    }

    /// Returns the next event.
    pub fn poll(&mut self) -> Option<EchoOutput> {
        self.outputs.pop_front()
    }

    /// Returns when to call [`tick`](Echo::tick) and [`poll_packet`](Echo::poll_packet) again if no packet
    /// arrives before.
    pub fn deadline(&self) -> Time {
        let ready = self.hosts.iter().filter_map(Host::ready_at).min();
        let next = ready.map_or(self.tick_at, |ready| ready.min(self.tick_at));
        self.clock.driver_time(next)
    }

    /// Returns the capacity and its use.
    pub fn capacity(&self) -> Capacity {
        let now = self.ticked;
        Capacity {
            packets_max: self.hosts.iter().map(Host::limit).sum(),
            packets: self.hosts.iter().map(|host| host.assigned).sum(),
            packets_free: self.hosts.iter().map(Host::room).sum(),
            parked_max: self.hosts.iter().map(Host::parked_max).sum(),
            packets_per_block: self.shape.lanes as u64,
            block_bytes_max: self.block_bytes_max() as u64,
            may_grow: self.hosts.iter().any(|host| host.may_grow(now)),
        }
    }

    /// Returns the packet counts.
    pub fn counters(&self) -> EchoCounters {
        self.counters
    }

    /// Returns the status of a host; `None` for an unknown host.
    pub fn status(&self, host: HostId) -> Option<HostStatus> {
        self.hosts.get(usize::from(host.0)).map(Host::status)
    }

    /// Returns the memory use.
    pub fn memory_bytes(&self) -> MemoryBytes {
        let index = match &self.records {
            BlockRecords::Index(index) => index.memory_bytes(),
            BlockRecords::RootOnly(root) => root.windows.iter().map(PacketWindow::memory_bytes).sum(),
        };
        MemoryBytes {
            index,
            send_queue: self.hosts.iter().map(|host| host.send_queue.bytes()).sum(),
            collected: self.collector.bytes(),
            ram: self.ram.bytes(),
        }
    }

    /// Returns the lowest ids above `after` in order, at most `count_max`; `None` without an index.
    ///
    /// # Cost
    /// Visits all blocks.
    pub fn ids(&self, after: Option<EchoBlockId>, count_max: usize) -> Option<Vec<EchoBlockId>> {
        match &self.records {
            BlockRecords::Index(index) => Some(index.ids_after(after, count_max)),
            BlockRecords::RootOnly(_) => None,
        }
    }

    /// Returns whether a block was stored and not dropped, even if it is lost; `None` without an index.
    pub fn has_block(&self, id: EchoBlockId) -> Option<bool> {
        match &self.records {
            BlockRecords::Index(index) => Some(index.contains(id)),
            BlockRecords::RootOnly(_) => None,
        }
    }

    /// Returns the number of blocks in the index; `None` without one.
    pub fn block_count(&self) -> Option<usize> {
        match &self.records {
            BlockRecords::Index(index) => Some(index.len()),
            BlockRecords::RootOnly(_) => None,
        }
    }
}
