//! Frames over circuits: Ethernet frames beside IP, over one or several cards.
//!
//! The threads that wait in `receive()` share the work: one leads, and polls the cards, sends due packets and advances
//! timers (leader/follower). A sending thread sends its own packets. So a request and its reply need no thread switch
//! on either side. A background thread does the work while no other thread waits.
//!
//! ```text
//! receive() ─┐ one of them leads          ┌ rings of the cards
//! receive() ─┼── Engine::lead ── Mux ─┤
//! background ────┘         send() ──────┘     └ sockets of the cards
//! ```
//!
//! Lock order: a card's frames are locked before the mux, or tried under it; the leader state before both.

mod accept;
mod address;
mod background;
mod card;
mod cards;
mod connection;
mod dial;
mod engine;
mod error;
mod event;
mod handle;
mod idle;
mod mux;
mod node;
mod sink;
mod source;
mod spin;

pub(crate) use accept::{EtherArrival, EtherListener};
pub use address::EtherAddress;
pub use cards::EtherCards;
pub use dial::EtherDial;
pub use error::EtherError;
pub use wirefs_circuit::CircuitCounters;
pub use wirefs_raw::{HardwareAddress, drop_net_raw, has_net_raw as has_right};

/// Our EtherType: local experimental (IEEE 802).
pub(crate) const ETHER_TYPE: u16 = 0x88B5;
/// The server's first byte: the client is accepted.
pub(crate) const GREETING: &[u8] = b"W";
/// The server's first byte: the client's key is not authorized.
pub(crate) const REFUSAL: &[u8] = b"R";

#[cfg(test)]
mod tests;
