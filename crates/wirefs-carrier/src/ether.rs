//! Frames over circuits: Ethernet packets beside IP, over one card or several at once.
//!
//! Whoever waits for a frame turns the node meanwhile: receives what the cards have, sends what is due, lets time pass. Who
//! sends does it in its own thread too. So a request and its reply cross no thread on either side; a thread of its own, the
//! *keeper*, does the same only where nobody waits.
//!
//! ```text
//! receive() ─┐ one of them leads          ┌ rings of the cards
//! receive() ─┼── Engine::lead ── Machine ─┤
//! keeper ────┘         send() ──────┘     └ sockets of the cards
//! ```
//!
//! Lock order: a card's frames are taken before the machine, or tried beneath it; the wheel before both.

mod accept;
mod bell;
mod card;
mod cards;
mod dial;
mod engine;
mod error;
mod keeper;
mod lane;
mod machine;
mod node;
mod owner;
mod place;
mod rest;
mod sink;
mod source;
mod spin;

pub(crate) use accept::{EtherArrival, EtherListener};
pub use cards::EtherCards;
pub use dial::EtherDial;
pub use error::EtherError;
pub use place::EtherPlace;
pub use wirefs_circuit::CircuitCounters as Counters;
pub use wirefs_raw::{HardwareAddress, give_up_right, has_right};

/// The type of our frames: local experimental (IEEE 802).
pub(crate) const ETHER_TYPE: u16 = 0x88B5;
/// The first byte of the server: the client is accepted.
pub(crate) const GREETING: &[u8] = b"W";
/// The first byte of the server: its key is not known here.
pub(crate) const REFUSAL: &[u8] = b"R";

#[cfg(test)]
mod tests;
