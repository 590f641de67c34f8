//! Raw sockets: ICMP and ICMPv6 echo, and Ethernet frames of one type.
//!
//! *Holds*: an [`EchoSocket`] receives only complete echo replies of its host with its identifier. Its
//! packets leave unfragmented, or the caller learns that they did not leave. An [`EtherSocket`] receives only
//! complete frames of its type that are addressed to its interface. Packets are received, changed and sent in
//! place, 64 per system call. An [`EchoRelay`] pings hosts with another node's source address, and that node
//! gets the reply.
//!
//! *Never*: decisions about what and when to send; threads; blocking, except in [`EchoSocket::measure_mtu`].
//!
//! *Drive it*:
//!
//! ```no_run
//! use wirefs_raw::{EchoIdent, EchoSequence, EchoSocket, PacketBatch};
//!
//! let socket = EchoSocket::open("192.0.2.1:0".parse()?, EchoIdent(0x7769))?;
//! let mut batch = PacketBatch::new(1_472);
//! batch.push(|payload| {
//!     payload.get_mut(..5)?.copy_from_slice(b"hello");
//!     Some((5, EchoSequence(0)))
//! });
//! socket.send(&mut batch)?;
//! // … and when the socket is readable, send the replies again:
//! socket.receive(&mut batch, 64)?;
//! batch.exchange(|_payload, _waited| Some(EchoSequence(1)));
//! socket.send(&mut batch)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *Proved by*: unit tests of headers, checksums and batches; `tests/suite`, which needs root: loopback, and
//! namespaces joined by veth.

pub mod limits;

pub mod batch;
mod capability;
pub mod checksum;
pub mod error;
pub mod ether;
pub mod icmp;

mod sys;

pub use batch::PacketBatch;
pub use capability::{drop_net_raw, has_net_raw};
pub use error::RawError;
pub use ether::frames::Frames;
pub use ether::ring::Ring;
pub use ether::{EtherSocket, HardwareAddress};
pub use icmp::header::{EchoIdent, EchoSequence};
pub use icmp::memory::{BufferUsage, charge_bytes};
pub use icmp::relay::EchoRelay;
pub use icmp::{Arrivals, Blocked, Departures, EchoSocket, Family};
