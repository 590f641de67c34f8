//! Reasons for closing a connection.

use wirefs_op::Tag;
use wirefs_op::wire::Malformed;

/// A violation of the protocol by a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerFault {
    /// The bytes are not a message.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The message is larger than the negotiated size.
    #[error("a message of {bytes} bytes where {msize} were agreed on")]
    Oversized {
        /// Size of the message, in bytes.
        bytes: usize,
        /// The negotiated size, in bytes.
        msize: usize,
    },
    /// The first message is not Tversion.
    #[error("the first message is not Tversion")]
    NotVersion,
    /// The client sent a second Tversion.
    #[error("a second Tversion")]
    SecondVersion,
    /// Tversion carries a tag, or another request carries none.
    #[error("tag {} where it does not belong", .0.0)]
    StrayTag(Tag),
    /// The client accepts only messages that are too small for the largest reply.
    #[error("messages of {msize} bytes are too small to serve")]
    MsizeTooSmall {
        /// The size that the client offered, in bytes.
        msize: u32,
    },
    /// A request for the tree came before Tattach.
    #[error("not attached yet")]
    NotAttached,
    /// The message belongs to a feature that was not negotiated.
    #[error("T{name} was not agreed on", name = .0.to_ascii_lowercase())]
    NotAgreed(&'static str),
    /// The request is not a read of file data, but came over a data connection.
    #[error("T{name} over a data connection", name = .0.to_ascii_lowercase())]
    NotData(&'static str),
    /// The client sent a second Tattach.
    #[error("a second Tattach")]
    SecondAttach,
    /// The tag belongs to an unanswered request.
    #[error("tag {} is in use", .0.0)]
    TagInUse(Tag),
    /// The client has more than `REQUESTS_MAX` unanswered requests.
    #[error("too many requests at once")]
    TooManyRequests,
    /// The number of the change is outside the range that the client may use now.
    #[error("change {0} is out of place")]
    StrayNumber(u64),
}

/// The reason why the server closes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    /// The client violated the protocol.
    #[error("protocol error: {0}")]
    Fault(#[from] PeerFault),
    /// A newer connection took over the session.
    #[error("the session went on over another connection")]
    Replaced,
    /// The server has `CONNECTIONS_MAX` connections.
    #[error("too many connections")]
    ConnectionsFull,
    /// The server has `SESSIONS_MAX` sessions.
    #[error("too many sessions")]
    SessionsFull,
    /// Too many requests of the session's earlier connections are still running.
    #[error("the session is still busy")]
    SessionBusy,
    /// The peer has its share of the connections, or of the sessions.
    #[error("this client has its share of the connections and sessions")]
    PartyFull,
    /// The connection did not attach in time.
    #[error("it does not attach in time")]
    Silent,
    /// Another key began the session.
    #[error("the session belongs to another key")]
    NotOwner,
    /// The client did not answer a recall in time.
    #[error("the client does not answer when leases are taken back")]
    Unresponsive,
    /// The client ended its session.
    #[error("the client ends its session")]
    Ended,
    /// The peer's right to use the tree was revoked.
    #[error("the right to use this export was revoked")]
    Revoked,
    /// The connection may not become a data connection of the session, or the session has enough of them.
    #[error("it is no data connection of a session")]
    NotJoined,
    /// The server stops.
    #[error("the server stops")]
    Stopping,
}
