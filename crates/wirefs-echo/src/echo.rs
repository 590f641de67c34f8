//! The machine: what a driver calls, and what it is told.
//!
//! ```text
//!                keep, drop, fetch                      poll: Fetched, Missing, Lost, Found, Silent, Answers
//!                       |                                    ^
//!   receive ──> open ── is it out? ──> wanted? damaged? ─────┘
//!   (packet)      |          |              |        \
//!              refused    refused       too close     seal ──> Resend (same buffer)
//!                                       to a copy
//!                                           |
//!                                        outbox ──(when due)──> poll_packet
//! ```
//!
//! The life of one packet of a block, as the index has it:
//!
//! | state | becomes | when |
//! |---|---|---|
//! | `Here` (waits in the outbox) | `Out` | it is due, and the host's rate allows it |
//! | `Out` (sent, expected back) | `Out`, with a new number | it comes back and goes out again in the same buffer |
//! | | `Here` | it comes back too close behind another copy, and is held back |
//! | | `Overdue` | packets sent well after it came back, or the buffer was empty for too long after it |
//! | `Overdue` | `Out` | it comes after all |
//! | | `Here` | it was rebuilt from other packets of the block, or from memory |
//!
//! A block with too few packets that are not overdue is lost, and reported; should one of them come after all, it is
//! found again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use wirefs_op::Time;

use crate::block::BlockId;
use crate::clock::Clock;
use crate::config::{Config, Keep, Misuse};
use crate::counters::{Capacity, Counters, MemoryBytes};
use crate::dropped::Dropped;
use crate::gather::Gather;
use crate::host::{Host, HostId, HostStatus};
use crate::index::Index;
use crate::packet::OVERHEAD_BYTES;
use crate::ram::Ram;
use crate::rate::Rate;
use crate::redundancy::Shape;
use crate::seal::Sealer;
use crate::window::Window;

mod drain;
mod forget;
mod give;
mod listen;
mod place;
mod receive;
mod repair;
mod send;
mod take;
mod watch;

pub use send::Written;
pub use take::Mark;

/// What became of a received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was sealed anew where it lies and is to be sent to the same host again, with this number in its header.
    Resend(u16),
    /// It is not to be sent.
    Absorb,
}

/// What the store tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A block that was fetched.
    Fetched {
        /// Its id.
        id: BlockId,
        /// Its contents.
        block: Bytes,
    },
    /// A block that passed while the driver [overheard](Echo::overhear): nobody asked for it yet.
    Passed {
        /// Its id.
        id: BlockId,
        /// Its contents.
        block: Bytes,
    },
    /// A block that was fetched and is not there.
    Missing {
        /// Its id.
        id: BlockId,
    },
    /// A block of which too few packets are left. It stays known until it is dropped, for it may be found again.
    Lost {
        /// Its id.
        id: BlockId,
    },
    /// A lost block, a packet of which came after all.
    Found {
        /// Its id.
        id: BlockId,
    },
    /// A host that does not answer any more.
    Silent {
        /// Its number.
        host: HostId,
    },
    /// A host that answers now and did not before.
    Answers {
        /// Its number.
        host: HostId,
    },
}

/// Why something cannot be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The hosts carry no more (ENOSPC).
    NoSpace {
        /// Whether more room may be found soon.
        may_grow: bool,
    },
    /// The block is larger than a block can be.
    TooLarge {
        /// What fits, in bytes.
        bytes_max: usize,
    },
    /// There is a block with this id.
    Exists,
    /// Too much is waiting already; again when the driver has sent some of it, or some of it was answered.
    Busy,
}

/// Which hosts a block should be with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distance {
    /// Those with most room.
    #[default]
    Any,
    /// Near ones: read soon, at the price of more packets a second.
    Near,
    /// Far ones: little work, read late.
    Far,
}

/// What is remembered of blocks.
#[derive(Debug)]
enum Known {
    Index(Index),
    Root(Root),
}

/// What a store remembers that remembers no block.
#[derive(Debug)]
struct Root {
    /// For each host, which packets are out.
    windows: Vec<Window>,
    dropped: Dropped,
    /// Blocks that somebody waits for, until when.
    wanted: BTreeMap<BlockId, Time>,
    /// Blocks that came by since somebody began to listen.
    heard: Option<BTreeSet<BlockId>>,
}

/// A block store whose medium is echo packets under way.
#[derive(Debug)]
pub struct Echo {
    shape: Shape,
    /// Of hosts that have none of their own.
    rate: Rate,
    /// Of what tells replayed packets without an index.
    window_packets: usize,
    piece_bytes_max: usize,
    sealer: Sealer,
    clock: Clock,
    hosts: Vec<Host>,
    known: Known,
    /// Blocks of the index that somebody waits for.
    wanted_count: usize,
    /// Whether blocks that pass are told of, although nobody waits for them.
    overhears: bool,
    gather: Gather,
    ram: Ram,
    outputs: VecDeque<Output>,
    /// Blocks that were kept since it was made.
    kept_count: u64,
    counters: Counters,
    /// When time's consequences are looked at next, in the store's time.
    tick_at: Time,
    ticked: Time,
    /// Groups of the index that are still to be searched for packets that are overdue.
    sweep_left: usize,
    /// Whether something that is in memory could not be repaired, since no host took it.
    is_unrepaired: bool,
}

impl Echo {
    /// Makes an empty store. Nothing is known of the hosts: it asks them first, and takes blocks when they answer.
    ///
    /// # Errors
    /// What is wrong with the config.
    pub fn new(config: &Config) -> Result<Echo, Misuse> {
        let shape = config.check()?;
        let sealer = Sealer::new(config.cipher, &config.key, config.origin).ok_or(Misuse::Key)?;
        let hosts = config.hosts.iter().enumerate();
        let hosts = hosts.map(|(number, host)| Host::new(HostId(number as u8), *host, config.rate)).collect();
        let known = match config.keep {
            Keep::Index => Known::Index(Index::new(shape.lanes)),
            Keep::Root { window_packets } => Known::Root(Root {
                windows: config.hosts.iter().map(|_| Window::new(window_packets)).collect(),
                dropped: Dropped::default(),
                wanted: BTreeMap::new(),
                heard: None,
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
            known,
            wanted_count: 0,
            overhears: false,
            gather: Gather::new(shape),
            ram: Ram::new(config.ram_bytes),
            outputs: VecDeque::new(),
            kept_count: 0,
            counters: Counters::default(),
            tick_at: Time::default(),
            ticked: Time::default(),
            sweep_left: 0,
            is_unrepaired: false,
        })
    }

    /// The bytes of the largest block.
    pub fn block_bytes_max(&self) -> usize {
        self.shape.block_bytes_max(self.piece_bytes_max)
    }

    /// The bytes of the largest payload of an echo packet that it sends.
    pub fn packet_bytes_max(&self) -> usize {
        self.piece_bytes_max + OVERHEAD_BYTES
    }

    /// What is to be told next.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to call [`tick`](Echo::tick) and [`poll_packet`](Echo::poll_packet) again at the latest, if nothing is
    /// received before.
    pub fn deadline(&self) -> Time {
        let ready = self.hosts.iter().filter_map(Host::ready).min();
        let next = ready.map_or(self.tick_at, |ready| ready.min(self.tick_at));
        self.clock.driver_time(next)
    }

    /// What fits, and what is there.
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

    /// What happened until now.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// What is known of a host; none of one that the store does not have.
    pub fn status(&self, host: HostId) -> Option<HostStatus> {
        self.hosts.get(usize::from(host.0)).map(Host::status)
    }

    /// The memory that it takes.
    pub fn memory_bytes(&self) -> MemoryBytes {
        let index = match &self.known {
            Known::Index(index) => index.memory_bytes(),
            Known::Root(root) => root.windows.iter().map(Window::memory_bytes).sum(),
        };
        MemoryBytes {
            index,
            outbox: self.hosts.iter().map(|host| host.outbox.bytes()).sum(),
            gathered: self.gather.bytes(),
            ram: self.ram.bytes(),
        }
    }

    /// The lowest ids of blocks after this one, in order, at most so many; none without an index.
    ///
    /// # Cost
    /// Looks at all blocks.
    pub fn ids(&self, after: Option<BlockId>, count_max: usize) -> Option<Vec<BlockId>> {
        match &self.known {
            Known::Index(index) => Some(index.ids_after(after, count_max)),
            Known::Root(_) => None,
        }
    }

    /// Whether a block was kept and not dropped, lost or not; none without an index.
    pub fn has_block(&self, id: BlockId) -> Option<bool> {
        match &self.known {
            Known::Index(index) => Some(index.contains(id)),
            Known::Root(_) => None,
        }
    }

    /// Blocks in the index; none without one.
    pub fn block_count(&self) -> Option<usize> {
        match &self.known {
            Known::Index(index) => Some(index.len()),
            Known::Root(_) => None,
        }
    }
}
