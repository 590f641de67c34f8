//! The parts of every simulation: virtual time, seeded random choices, and a network with faults.
//!
//! *Holds*: one seed gives one sequence of choices and events, the same on every machine.
//!
//! *Never*: clocks, threads, sockets, other randomness. Shipped.
//!
//! *Drive it*:
//! ```
//! use wirefs_op::Time;
//! use wirefs_virtual::{Dice, EventQueue, PacketFaults, PacketNet};
//!
//! let (mut dice, mut events) = (Dice::new(7), EventQueue::default());
//! let net = PacketNet::new(PacketFaults { delay_us: (5, 9), ..PacketFaults::default() });
//! for delay in net.delays(&mut dice, "a", "b") {
//!     events.push(Time(0) + delay, "packet");
//! }
//! assert_eq!(events.pop().map(|(_, event)| event), Some("packet"));
//! ```
//!
//! *Proved by*: tests beside each module; the simulations that use it.

mod dice;
mod events;
mod net;

pub use dice::Dice;
pub use events::EventQueue;
pub use net::{InOrder, PARTS, PacketFaults, PacketNet, Span, TwoLanes, delay};
