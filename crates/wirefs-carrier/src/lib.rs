//! Carriers move frames between two peers: unix sockets, TCP with TLS 1.3, plain TCP, ssh, Ethernet.
//!
//! *Holds*: frames arrive whole and in order, or the carrier reports that it is lost. Urgent frames overtake bulk
//! frames that the kernel does not have yet. Each pushed frame has a thread that will write it. Every buffer has a
//! bound in [`limits`]. Over TLS and Ethernet both sides have proved their keys before any frame is accepted.
//!
//! *Never*: decisions about messages, sessions, retries; async runtimes; certificate authorities (keys are pinned).
//!
//! *Drive it*:
//! ```
//! use wirefs_carrier::{Class, FrameSource, SendQueue, memory};
//! use wirefs_op::Frame;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (near, mut far) = memory::pair()?;
//! let send_queue = SendQueue::start(near.sink, near.closer, |lost| eprintln!("{lost}"));
//! send_queue.push(Frame { head: vec![7, 0, 0, 0, 100, 1, 0], data: Default::default() }, Class::Urgent);
//! send_queue.flush();
//! assert_eq!(far.source.receive()?.as_deref(), Some(&[100, 1, 0][..]));
//! # Ok(())
//! # }
//! ```
//!
//! *Proved by*: one contract suite that runs over every carrier (`tests/suite`), and unit tests beside the modules.

mod address;
mod assembly;
mod carrier;
mod closer;
mod congestion;
mod dial;
pub mod ether;
mod gauge;
mod in_process;
mod layered_dial;
pub mod limits;
mod listen;
mod lost;
pub mod memory;
mod packing;
mod path;
mod place;
mod printable;
mod rate_limit;
mod send_queue;
mod socket;
pub mod ssh;
mod stdio;
mod stream;
mod sys;
pub mod tls;

pub use address::{Address, AddressError, HostPort, Login, Source, TLS_PORT_DEFAULT};
pub use carrier::{Carrier, FrameSink, FrameSource, PeerInfo, SendProgress};
pub use closer::Closer;
pub use dial::{Dial, DialError, DialOptions, TcpDial, UnixDial};
pub use gauge::{Gauge, SendTimes};
pub use in_process::{FrameHandler, InProcessPeer};
pub use layered_dial::LayeredDial;
pub use limits::RECEIVE_BYTES_MAX;
pub use listen::{AcceptError, ListenError, ListenOptions, Listener, ListenerCloser, PendingConnection};
pub use lost::{CarrierLost, FramingError};
pub use packing::{PackedBytes, PackedDirection, packing};
pub use path::PathStatus;
pub use printable::{is_hidden, printable, printable_lines};
pub use rate_limit::{RateLimit, RateLimits};
pub use send_queue::{Class, SendQueue};
pub use stdio::Stdio;
