//! Invitations: two machines that share a short code exchange their keys and names.
//!
//! ```text
//!  joiner                                inviter
//!    query (UDP, to the segment) ──────────▶     only by code alone, without an address
//!    ◀────────────────────────────── offer       for the code's label: the port
//!    hello: SPAKE2, key, name ─────────────▶     over TCP
//!    ◀───────────── hello: SPAKE2, key, name
//!    proof ────────────────────────────────▶     right: admitted; wrong: one try less
//!    ◀─────────────────────────────── proof      admits the inviter
//! ```
//!
//! A proof is a MAC of both hellos, so of both keys, under the key that SPAKE2 derives from the code. The joiner's proof
//! comes first: a stranger learns nothing about the code without the loss of a try.

mod code;
mod inviter;
mod joiner;
mod message;
mod refusal;
mod secret;

pub use code::InvitationCode;
pub use inviter::{Admission, Invitation, PendingGuest};
pub use joiner::{InvitationError, Joiner, WaitingJoiner, offered_port, query};
pub use refusal::Refusal;

use crate::key::{NodeKey, NodeName};

/// The random bytes of one key exchange.
pub type Entropy = [u8; 64];

/// A machine as it introduces itself: the key and the name for the other's authorized-keys file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// The key.
    pub key: NodeKey,
    /// The name.
    pub name: NodeName,
}

#[cfg(test)]
mod tests;
