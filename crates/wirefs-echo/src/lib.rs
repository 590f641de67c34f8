//! A block store whose medium is the network: each block is in echo packets in flight, which are sent again
//! as they come back. This crate is the state machine; a driver has the sockets and the clock.
//!
//! Terms: the *RTT* of a host is the network's part of the time that a packet takes. The *cycle* is the time
//! from one transmission of a packet to its next: the RTT plus the wait in the receive buffer. A *lane* is
//! the position of a packet among those of its block. A *padding probe* is a packet without data that
//! measures the path.
//!
//! *Holds*: a block that was stored, and neither dropped nor reported lost, can be fetched bit for bit. A
//! fetched block was stored under that id and not dropped since. A packet that the store did not send, or has
//! received before, changes nothing but a counter. No more is admitted than the hosts carry. Each queue and
//! table has a limit. The only contents in memory are those being sent, those being fetched, and those in the
//! cache that the user enabled.
//!
//! *Never*: sockets, clocks, threads, randomness, or contents that another party can read.
//!
//! *Drive it*: when a host's socket is readable, receive as many packets as [`Echo::allowance`] returns, pass
//! each to [`Echo::receive`], and send it again if the verdict says so. Report an empty socket with
//! [`Echo::drained`]. Call [`Echo::tick`], send the packets of [`Echo::poll_packet`], and process the events
//! of [`Echo::poll`]. Repeat at [`Echo::deadline`] at the latest.
//!
//! ```
//! use std::time::Duration;
//! use wirefs_echo::{Cipher, Distance, Echo, EchoBlockId, EchoConfig, EchoKey, EchoOutput, HostConfig, HostId};
//! use wirefs_echo::{Keep, Origin, ReceiveVerdict, Redundancy, SendRate, Time};
//!
//! let host = HostConfig { buffer_packets: 1_000, parked_packets: 0, goal_packets: 100, rate: None };
//! let mut echo = Echo::new(&EchoConfig {
//!     key: EchoKey([7; 32]),
//!     origin: Origin(1),
//!     cipher: Cipher::default(),
//!     hosts: vec![host],
//!     keep: Keep::Index,
//!     redundancy: Redundancy::Copies(1),
//!     rate: SendRate::Fixed(1_000),
//!     packet_bytes: 1_472,
//!     ram_bytes: 0,
//! })?;
//! // A network that returns each packet after 50 ms.
//! let (host, rtt, mut now) = (HostId(0), Duration::from_millis(50), Time::default());
//! let mut buffer = vec![0; echo.packet_bytes_max()];
//! echo.tick(now);
//! let probe = echo.poll_packet(now, host, &mut buffer).ok_or("the store probes the host first")?;
//! now = now + rtt;
//! echo.receive(now, host, Duration::ZERO, &mut buffer[..probe.bytes]);
//! let id = EchoBlockId::from(1);
//! echo.store_block(now, id, "some block".into(), Distance::Any).map_err(|_| "there is room")?;
//! let first = echo.poll_packet(now, host, &mut buffer).ok_or("the block is sent")?;
//! for _ in 0..9 {
//!     now = now + rtt;
//!     let verdict = echo.receive(now, host, Duration::ZERO, &mut buffer[..first.bytes]);
//!     assert!(matches!(verdict, ReceiveVerdict::Resend(_)));
//! }
//! echo.fetch(now, id).map_err(|_| "the fetch starts")?;
//! now = now + rtt;
//! echo.receive(now, host, Duration::ZERO, &mut buffer[..first.bytes]);
//! let events: Vec<EchoOutput> = std::iter::from_fn(|| echo.poll()).collect();
//! assert!(events.contains(&EchoOutput::Fetched { id, block: "some block".into() }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *Proved by*: unit tests of each part; `tests/suite`, with a simulated network that delays, loses,
//! duplicates, reorders, damages and limits packets, and with attacks.

mod block;
mod clock;
mod config;
mod counters;
mod dropped;
mod echo;
mod field;
mod host;
mod index;
pub mod limits;
mod monitor_interval;
mod packet;
mod phase;
mod piece_collector;
mod pieces;
mod ram;
pub mod rate;
mod redundancy;
pub mod replication;
mod rtt;
pub mod seal;
mod send_queue;
mod timeline;
mod token_bucket;
mod window;

pub use block::EchoBlockId;
pub use config::{ConfigError, EchoConfig, Keep};
pub use counters::{Capacity, EchoCounters, MemoryBytes, RefusedPackets};
pub use echo::{Distance, Echo, EchoOutput, EchoRefusal, ReceiveVerdict, SyncPoint, WrittenPacket};
pub use host::{HostConfig, HostId, HostState, HostStatus};
pub use packet::{OVERHEAD_BYTES, Origin, PacketSequence};
pub use rate::SendRate;
pub use redundancy::Redundancy;
pub use seal::{Cipher, EchoKey};
pub use wirefs_op::Time;
