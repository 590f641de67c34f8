//! Causes of a lost carrier.

use std::io;

/// The carrier can transfer nothing more. The session outlives it: dial again.
#[derive(Debug, thiserror::Error)]
pub enum CarrierLost {
    /// This side closed it.
    #[error("the connection was closed on this side")]
    Closed,
    /// The peer closed while we were sending.
    #[error("the peer closed the connection")]
    PeerClosed,
    /// The peer closed in the middle of a message, or without the close message of its carrier.
    #[error("the connection ended in the middle of a message")]
    Cut {
        /// Bytes of the message that had arrived.
        received_bytes: usize,
    },
    /// An error of the operating system.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    /// The peer sent an invalid frame.
    #[error(transparent)]
    FramingError(#[from] FramingError),
    /// The peer sent an invalid packed message.
    #[error("the peer sent a packed message that cannot be unpacked: {0}")]
    Packed(String),
    /// TLS found forged, damaged or unexpected bytes.
    #[error("the encrypted connection failed: {0}")]
    Tls(rustls::Error),
    /// The peer does not accept our key.
    #[error("{}", crate::tls::explain_refusal(.line))]
    Refused {
        /// The line that the server's authorized-keys file lacks.
        line: String,
    },
    /// The child process of the carrier has ended.
    #[error("{what}{}", crate::ssh::indented(.stderr))]
    Child {
        /// The event, in plain words.
        what: String,
        /// The end of the child's standard error.
        stderr: String,
    },
}

/// The peer broke the framing; no later byte can be interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the peer sent a message that {what}: its size word says {size_bytes} bytes")]
pub struct FramingError {
    /// The fault.
    pub what: &'static str,
    /// The message length that the peer sent, in bytes.
    pub size_bytes: u32,
}
