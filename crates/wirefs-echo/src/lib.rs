//! A block store whose medium is the network: each block lives in echo packets under way, which are sent again as they
//! come back. This is its bookkeeping; a driver has the sockets and the clock.
//!
//! *Holds*: what was kept, and not reported lost, can be fetched bit for bit; what is fetched was kept under that id and
//! not dropped since; a packet that the store did not send, or has back already, changes nothing but a counter; no more
//! is admitted than the hosts carry; each queue and table has a limit; no contents are in memory but those on their way,
//! those that somebody waits for, and those that the user wants there.
//!
//! *Never*: sockets, clocks, threads, chance, or contents that anybody else can read.
//!
//! *Drive it*: when a host's socket is readable, receive as many packets as [`Echo::allowance`] says, give each to
//! [`Echo::receive`] and send on what it says; tell it when the socket is empty ([`Echo::drained`]); call [`Echo::tick`],
//! send what [`Echo::poll_packet`] writes, and hear what [`Echo::poll`] tells; again at [`Echo::deadline`] at the latest.
//!
//! ```
//! use std::time::Duration;
//! use wirefs_echo::{BlockId, Cipher, Config, Distance, Echo, HostConfig, HostId, Keep, Key, Origin, Output, Rate};
//! use wirefs_echo::{Redundancy, Time, Verdict};
//!
//! let host = HostConfig { buffer_packets: 1_000, parked_packets: 0, goal_packets: 100, rate: None };
//! let mut echo = Echo::new(&Config {
//!     key: Key([7; 32]),
//!     origin: Origin(1),
//!     cipher: Cipher::default(),
//!     hosts: vec![host],
//!     keep: Keep::Index,
//!     redundancy: Redundancy::Copies(1),
//!     rate: Rate::Fixed(1_000),
//!     packet_bytes: 1_472,
//!     ram_bytes: 0,
//! })?;
//! // A network that returns each packet after 50 ms.
//! let (host, lap, mut now) = (HostId(0), Duration::from_millis(50), Time::default());
//! let mut buffer = vec![0; echo.packet_bytes_max()];
//! echo.tick(now);
//! let asks = echo.poll_packet(now, host, &mut buffer).ok_or("it asks the host first")?;
//! now = now + lap;
//! echo.receive(now, host, Duration::ZERO, &mut buffer[..asks.bytes]);
//! let id = BlockId::from(1);
//! echo.keep(now, id, "some block".into(), Distance::Any).map_err(|_| "there is room")?;
//! let first = echo.poll_packet(now, host, &mut buffer).ok_or("the block goes out")?;
//! for _ in 0..9 {
//!     now = now + lap;
//!     assert!(matches!(echo.receive(now, host, Duration::ZERO, &mut buffer[..first.bytes]), Verdict::Resend(_)));
//! }
//! echo.fetch(now, id).map_err(|_| "it is there")?;
//! now = now + lap;
//! echo.receive(now, host, Duration::ZERO, &mut buffer[..first.bytes]);
//! let told: Vec<Output> = std::iter::from_fn(|| echo.poll()).collect();
//! assert!(told.contains(&Output::Fetched { id, block: "some block".into() }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *Proved by*: unit tests beside each part; `tests/suite`, where it lives in a simulated network that delays, loses,
//! doubles, reorders, damages and limits, and is attacked.

pub mod limits;

mod block;
mod counters;
mod packet;
mod redundancy;
pub mod seal;

mod clock;
mod dropped;
mod field;
mod gather;
mod index;
mod outbox;
mod phase;
mod pieces;
mod ram;
mod window;

mod epoch;
mod host;
mod lap;
mod pace;
pub mod rate;
mod timeline;

mod config;
mod echo;

pub mod together;

pub use block::BlockId;
pub use config::{Config, Keep, Misuse};
pub use counters::{Capacity, Counters, MemoryBytes, Refused};
pub use echo::{Distance, Echo, Mark, Output, Refusal, Verdict, Written};
pub use host::{HostConfig, HostId, HostStatus, Standing};
pub use packet::{OVERHEAD_BYTES, Origin, Sequence};
pub use rate::Rate;
pub use redundancy::Redundancy;
pub use seal::{Cipher, Key};
pub use wirefs_op::Time;
