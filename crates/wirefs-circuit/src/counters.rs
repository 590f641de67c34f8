//! Packet counters.

/// The reason for which a received packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DropReason {
    /// Not a packet of this protocol, or truncated.
    Malformed,
    /// For an unknown or closed group.
    UnknownGroup,
    /// Authentication failed: forged, damaged or misdirected.
    Forged,
    /// Received before, or older than the anti-replay window.
    Replayed,
    /// A handshake that failed for lack of space, keys, a valid cookie or trust.
    HandshakeRejected,
    /// The receive buffer of its circuit is full until earlier data arrives.
    NoRoom,
}

/// Packet counters since the node was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CircuitCounters {
    /// Accepted packets.
    pub taken: u64,
    /// Dropped: not of this protocol, or truncated.
    pub malformed: u64,
    /// Dropped: unknown or closed group.
    pub unknown: u64,
    /// Dropped: forged, damaged or misdirected.
    pub forged: u64,
    /// Dropped: received before, or older than the anti-replay window.
    pub replayed: u64,
    /// Dropped handshakes: lack of space, keys or trust.
    pub unwelcome: u64,
    /// Dropped because the receive buffer is full until earlier data arrives; the sender retransmits.
    pub no_room: u64,
    /// Cookies sent.
    pub cookies: u64,
    /// Packets sent.
    pub sent: u64,
}

impl CircuitCounters {
    pub(crate) fn count(&mut self, result: Result<(), DropReason>) {
        let counter = match result {
            Ok(()) => &mut self.taken,
            Err(DropReason::Malformed) => &mut self.malformed,
            Err(DropReason::UnknownGroup) => &mut self.unknown,
            Err(DropReason::Forged) => &mut self.forged,
            Err(DropReason::Replayed) => &mut self.replayed,
            Err(DropReason::HandshakeRejected) => &mut self.unwelcome,
            Err(DropReason::NoRoom) => &mut self.no_room,
        };
        *counter += 1;
    }
}
