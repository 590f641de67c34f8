//! Carriers move frames between two peers: unix sockets, TCP with TLS 1.3, plain TCP, ssh, Ethernet.
//!
//! *Holds*: frames arrive whole, in the order they were sent, or the carrier says that it is lost; urgent frames overtake
//! bulk that is not yet with the kernel; no push is left behind without a thread that will write it; every buffer has
//! a bound in [`limits`]; over TLS and Ethernet both sides have proved their keys before a frame moves.
//!
//! *Never*: decisions about messages, sessions, retries; async runtimes; certificates of authorities (keys are pinned).
//!
//! *Drive it*:
//! ```
//! use wirefs_carrier::{Class, FrameSource, Outbox, memory};
//! use wirefs_op::Frame;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (near, mut far) = memory::pair()?;
//! let outbox = Outbox::start(near.sink, near.closer, |lost| eprintln!("{lost}"));
//! outbox.push(Frame { head: vec![7, 0, 0, 0, 100, 1, 0], data: Default::default() }, Class::Urgent);
//! outbox.flush();
//! assert_eq!(far.source.receive()?.as_deref(), Some(&[100, 1, 0][..]));
//! # Ok(())
//! # }
//! ```
//!
//! *Proved by*: one contract suite that runs over every carrier (`tests/suite`), unit tests beside the modules.

mod address;
mod assembly;
mod carrier;
mod closer;
mod congestion;
mod dial;
mod direct;
pub mod ether;
mod gauge;
pub mod limits;
mod listen;
mod lost;
pub mod memory;
mod outbox;
mod path;
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
pub use direct::{Direct, Hear};
pub use gauge::{Gauge, SendTimes};
pub use limits::RECEIVE_BYTES_MAX;
pub use listen::{AcceptError, ListenError, ListenOptions, Listener, ListenerCloser, Pending};
pub use lost::{CarrierLost, PeerFault};
pub use outbox::{Class, Outbox};
pub use path::PathStatus;
pub use stdio::Stdio;
