//! What a node counts.

/// Why a packet that arrived was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// No packet of ours, or cut short.
    Malformed,
    /// For a group that is not, or no more.
    Unknown,
    /// Its seal is broken, or it was meant for another place.
    Forged,
    /// It came before, or is too old to know.
    Replayed,
    /// A handshake for which there is no room, no key, no cookie or no trust.
    Unwelcome,
    /// Its circuit has no room until an earlier piece comes.
    NoRoom,
}

/// Counts since the node was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that were taken.
    pub taken: u64,
    /// Packets dropped: none of ours, or cut short.
    pub malformed: u64,
    /// Packets dropped: for a group that is not, or no more.
    pub unknown: u64,
    /// Packets dropped: forged, damaged, or sent from or to another card than was sealed.
    pub forged: u64,
    /// Packets dropped: they came before, or are too old to know.
    pub replayed: u64,
    /// Handshakes dropped: no room, no key, no trust.
    pub unwelcome: u64,
    /// Packets dropped since their circuit waits for an earlier piece; their sender sends them again.
    pub no_room: u64,
    /// Strangers that were asked to come again with a cookie.
    pub cookies: u64,
    /// Packets sent.
    pub sent: u64,
}

impl Counters {
    pub(crate) fn count(&mut self, result: Result<(), Refused>) {
        let counter = match result {
            Ok(()) => &mut self.taken,
            Err(Refused::Malformed) => &mut self.malformed,
            Err(Refused::Unknown) => &mut self.unknown,
            Err(Refused::Forged) => &mut self.forged,
            Err(Refused::Replayed) => &mut self.replayed,
            Err(Refused::Unwelcome) => &mut self.unwelcome,
            Err(Refused::NoRoom) => &mut self.no_room,
        };
        *counter += 1;
    }
}
