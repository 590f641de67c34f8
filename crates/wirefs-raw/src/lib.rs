//! Raw sockets for what lives below TCP and UDP: ICMP and ICMPv6 echo, and frames of an Ethernet type of their own.
//!
//! *Holds*: an [`EchoSocket`] receives the echo replies of its host that carry its ident, whole, and nothing else; what it
//! sends leaves unfragmented, or the caller is told that it did not leave; an [`EtherSocket`] receives the frames of its
//! type that are addressed to its interface, whole, and nothing else; packets are received, changed and sent where
//! they lie, 64 to a system call; a [`Courier`] pings hosts in the name of another one, who gets the reply.
//!
//! *Never*: decisions about what to send, and when; threads; waiting, but for [`EchoSocket::measure_mtu`].
//!
//! *Drive it*:
//!
//! ```no_run
//! use wirefs_raw::{Batch, EchoSocket, Ident, Sequence};
//!
//! let socket = EchoSocket::open("192.0.2.1:0".parse()?, Ident(0x7769))?;
//! let mut batch = Batch::new(1_472);
//! batch.push(|payload| {
//!     payload.get_mut(..5)?.copy_from_slice(b"hello");
//!     Some((5, Sequence(0)))
//! });
//! socket.send(&mut batch)?;
//! // … and when the socket is readable, send back what came:
//! socket.receive(&mut batch, 64)?;
//! batch.exchange(|_payload, _waited| Some(Sequence(1)));
//! socket.send(&mut batch)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *Proved by*: unit tests of headers, checksums and batches; `tests/suite`, which needs root: loopback and namespaces
//! joined by veth.

pub mod limits;

pub mod batch;
pub mod checksum;
pub mod error;
pub mod ether;
pub mod icmp;
mod right;

mod sys;

pub use batch::Batch;
pub use error::RawError;
pub use ether::frames::Frames;
pub use ether::ring::Ring;
pub use ether::{EtherSocket, HardwareAddress};
pub use icmp::courier::Courier;
pub use icmp::header::{Ident, Sequence};
pub use icmp::memory::{Memory, charge_bytes};
pub use icmp::{Arrivals, Blocked, Departures, EchoSocket, Family};
pub use right::{give_up_right, has_right};
