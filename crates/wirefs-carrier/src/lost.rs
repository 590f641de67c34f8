//! Why a carrier is gone.

use std::io;

/// The carrier can carry nothing more. The session above outlives it: dial again.
#[derive(Debug, thiserror::Error)]
pub enum CarrierLost {
    /// This side closed it.
    #[error("the connection was closed on this side")]
    Closed,
    /// The peer is gone while we were sending.
    #[error("the peer closed the connection")]
    PeerClosed,
    /// The peer closed in the middle of a message, or without the farewell that its carrier has.
    #[error("the connection ended in the middle of a message")]
    Cut {
        /// Bytes of the message that had arrived.
        received_bytes: usize,
    },
    /// The operating system says so.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    /// The peer sent what no message can be.
    #[error(transparent)]
    PeerFault(#[from] PeerFault),
    /// TLS found forged, damaged or unexpected bytes.
    #[error("the encrypted connection failed: {0}")]
    Tls(rustls::Error),
    /// The peer does not accept our key.
    #[error("{}", crate::tls::explain_refusal(.line))]
    Refused {
        /// The line that the server's authorized-keys file lacks.
        line: String,
    },
    /// The child process that carried the bytes has ended.
    #[error("{what}{}", crate::ssh::indented(.stderr))]
    Child {
        /// What happened, in plain words.
        what: String,
        /// The last that the child wrote to its standard error.
        stderr: String,
    },
}

/// Blame: the peer broke the framing. Nothing that it sends after can be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the peer sent a message that {what}: its size word says {size_bytes} bytes")]
pub struct PeerFault {
    /// What is wrong with it.
    pub what: &'static str,
    /// The size that the peer announced.
    pub size_bytes: u32,
}
