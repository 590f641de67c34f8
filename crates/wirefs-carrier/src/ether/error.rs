//! Errors of setting up a node, as messages for users.

use std::io;

use wirefs_circuit::CircuitMisuse;
use wirefs_raw::RawError;

/// A node for `ether` addresses cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum EtherError {
    /// A card cannot be used.
    #[error("{0}; `wirefs doctor` looks at this machine")]
    Card(#[from] RawError),
    /// Too many cards, or too small an MTU.
    #[error(transparent)]
    Cards(#[from] CircuitMisuse),
    /// Our key is no ed25519 key.
    #[error("the identity cannot be used for ether:// addresses")]
    Identity,
    /// The system gives no random numbers.
    #[error("the system gives no random numbers, so no key can be made")]
    Chance,
    /// Another server of this machine has the card.
    #[error("another wirefs server listens on {card}; stop it, or choose another card")]
    ReadOutcome {
        /// The card.
        card: String,
    },
    /// This process is out of file descriptors or threads.
    #[error("this machine has no resources left: {0}")]
    Resources(#[from] io::Error),
}
