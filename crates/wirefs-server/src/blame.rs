//! Why a conversation ends.

use wirefs_op::Tag;
use wirefs_op::wire::Malformed;

/// What a client did against the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerFault {
    /// Not a message.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Larger than what was agreed on.
    #[error("a message of {bytes} bytes where {msize} were agreed on")]
    Oversized {
        /// Its size, in bytes.
        bytes: usize,
        /// The agreed size, in bytes.
        msize: usize,
    },
    /// Something else came before Tversion.
    #[error("the first message is not Tversion")]
    NotVersion,
    /// Tversion came again.
    #[error("a second Tversion")]
    SecondVersion,
    /// Tversion carried a tag, or another request carried none.
    #[error("tag {} where it does not belong", .0.0)]
    StrayTag(Tag),
    /// The client takes only messages that are too small to serve it.
    #[error("messages of {msize} bytes are too small to serve")]
    MsizeTooSmall {
        /// What it offered, in bytes.
        msize: u32,
    },
    /// A request for a tree came before Tattach.
    #[error("not attached yet")]
    NotAttached,
    /// What was not agreed on.
    #[error("T{name} was not agreed on", name = .0.to_ascii_lowercase())]
    NotAgreed(&'static str),
    /// A data connection carries reads of file data alone.
    #[error("T{name} over a data connection", name = .0.to_ascii_lowercase())]
    NotData(&'static str),
    /// Tattach came again.
    #[error("a second Tattach")]
    SecondAttach,
    /// The tag of a request that is not answered yet.
    #[error("tag {} is in use", .0.0)]
    TagInUse(Tag),
    /// More requests than `REQUESTS_MAX` at once.
    #[error("too many requests at once")]
    TooManyRequests,
    /// The number of a change is not one that a client may send now.
    #[error("change {0} is out of place")]
    StrayNumber(u64),
}

/// Why the server closes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Parting {
    /// The client broke the protocol.
    #[error("protocol error: {0}")]
    Fault(#[from] PeerFault),
    /// A newer connection took the session over.
    #[error("the session went on over another connection")]
    Replaced,
    /// There is no room for one more connection.
    #[error("too many connections")]
    ConnectionsFull,
    /// There is no room for one more session.
    #[error("too many sessions")]
    SessionsFull,
    /// Requests of the session's earlier connections still run, too many to take more.
    #[error("the session is still busy")]
    SessionBusy,
    /// The client did not say in time that it has forgotten what it was told to.
    #[error("the client does not answer when leases are taken back")]
    Unresponsive,
    /// The client has ended its session.
    #[error("the client ends its session")]
    Ended,
    /// It wanted to be a data connection of a session that it does not belong to, or that has enough.
    #[error("it is no data connection of a session")]
    NotJoined,
    /// The server stops.
    #[error("the server stops")]
    Stopping,
}
