//! Reaching a peer, as often as it takes.

mod choose;
mod error;
mod tcp;
mod unix;

pub use choose::DialOptions;
pub use error::DialError;
pub use tcp::TcpDial;
pub(crate) use tcp::connect;
pub use unix::UnixDial;

use crate::carrier::Carrier;
use crate::path::PathStatus;

/// Reaches one peer. The first dial may talk to the person at the terminal; later ones must not.
pub trait Dial: Send + Sync {
    /// Connects and authenticates, asking the person where the carrier may (ssh passwords).
    ///
    /// # Errors
    /// The peer cannot be reached or is not who it was; the error says what to do.
    ///
    /// # Cost
    /// unix 0, tcp 1, tls 3 round trips; ssh about 8.
    fn dial(&self) -> Result<Carrier, DialError>;

    /// Connects again for a session that exists, with nobody to ask.
    ///
    /// # Errors
    /// As [`dial`](Self::dial).
    ///
    /// # Cost
    /// As [`dial`](Self::dial), but tls 2 round trips: a refusal then shows at the first receive.
    fn dial_again(&self) -> Result<Carrier, DialError> {
        self.dial()
    }

    /// Connects once more beside a connection that is in use, by the same carrier: over a way that has none yet, where there is one.
    ///
    /// # Errors
    /// As [`dial`](Self::dial).
    ///
    /// # Cost
    /// As [`dial_again`](Self::dial_again).
    fn dial_beside(&self) -> Result<Carrier, DialError> {
        self.dial_again()
    }

    /// How many ways lead to the peer that one connection each may take, so that together they bring more.
    fn ways(&self) -> usize {
        1
    }

    /// The ways that the last connection takes; none where its carrier has but one, or it is over.
    fn paths(&self) -> Vec<PathStatus> {
        Vec::new()
    }
}
