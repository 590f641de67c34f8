//! Dialing a peer, any number of times.

mod error;
mod options;
mod tcp;
mod unix;

pub use error::DialError;
pub use options::DialOptions;
pub use tcp::TcpDial;
pub(crate) use tcp::connect;
pub use unix::UnixDial;

use crate::carrier::Carrier;
use crate::path::PathStatus;
use crate::ssh::UserPrompts;

/// Dials one peer. The first dial may ask the user at the terminal; later ones must not.
pub trait Dial: Send + Sync {
    /// Connects and authenticates; asks the user if the carrier may (ssh passwords).
    ///
    /// # Errors
    /// Fails if the peer cannot be reached or has another key; the error names the next step.
    ///
    /// # Cost
    /// unix 0, tcp 1, tls 3 round trips; ssh about 8.
    fn dial(&self) -> Result<Carrier, DialError>;

    /// Reconnects for an existing session, without asking the user.
    ///
    /// # Errors
    /// As [`dial`](Self::dial).
    ///
    /// # Cost
    /// As [`dial`](Self::dial), but tls 2 round trips: a refusal then shows at the first receive.
    fn dial_again(&self) -> Result<Carrier, DialError> {
        self.dial()
    }

    /// Makes a further connection beside one in use, by the same carrier; over an unused network path, if there is one.
    ///
    /// # Errors
    /// As [`dial`](Self::dial).
    ///
    /// # Cost
    /// As [`dial_again`](Self::dial_again).
    fn dial_additional(&self) -> Result<Carrier, DialError> {
        self.dial_again()
    }

    /// Returns the number of network paths to the peer. One connection for each adds bandwidth.
    fn path_count(&self) -> usize {
        1
    }

    /// Returns the network paths of the last connection; empty if its carrier has only one, or the connection has
    /// ended.
    fn paths(&self) -> Vec<PathStatus> {
        Vec::new()
    }

    /// Returns the users who may answer questions of the next [`dial_again`](Self::dial_again); `None` if the carrier
    /// asks nothing.
    fn prompts(&self) -> Option<&UserPrompts> {
        None
    }
}
