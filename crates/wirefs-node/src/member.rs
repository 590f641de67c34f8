//! One node in the table of another.

use crate::record::{NodeRecord, SignedRecord};
use crate::replay::ReplayWindow;
use core::net::SocketAddr;
use wirefs_op::Time;

/// The state of a node, as in SWIM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Liveness {
    /// The node answers probes.
    Alive,
    /// The node did not answer a probe, and may still refute.
    Suspect,
    /// The node did not refute in time.
    Dead,
    /// The node announced that it leaves.
    Left,
}

impl Liveness {
    /// Returns whether the node counts as a member.
    pub fn is_up(self) -> bool {
        matches!(self, Liveness::Alive | Liveness::Suspect)
    }

    pub(crate) fn code(self) -> u8 {
        match self {
            Liveness::Alive => 0,
            Liveness::Suspect => 1,
            Liveness::Dead => 2,
            Liveness::Left => 3,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Liveness> {
        [Liveness::Alive, Liveness::Suspect, Liveness::Dead, Liveness::Left].get(usize::from(code)).copied()
    }
}

/// A node in the table.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) signed: SignedRecord,
    pub(crate) state: Liveness,
    /// The time of the last change of `state`.
    pub(crate) since: Time,
    /// The time of the last change from down to up.
    pub(crate) up_since: Time,
    /// The end of the suspicion timeout.
    pub(crate) dead_at: Time,
    /// Its name resolves to it.
    pub(crate) holds_name: bool,
    /// Source address of its last packet.
    pub(crate) last_source: Option<SocketAddr>,
    pub(crate) window: ReplayWindow,
    /// The last time it was notified that it is suspected or dead, or that another node holds its name.
    pub(crate) notified_at: Option<Time>,
}

impl Member {
    pub(crate) fn new(signed: SignedRecord, now: Time) -> Member {
        Member {
            signed,
            state: Liveness::Alive,
            since: now,
            up_since: now,
            dead_at: now,
            holds_name: false,
            last_source: None,
            window: ReplayWindow::default(),
            notified_at: None,
        }
    }

    pub(crate) fn record(&self) -> &NodeRecord {
        &self.signed.record
    }

    /// Returns the address for packets to it.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.addresses().next()
    }

    /// Returns its possible addresses: the source of its last packet, or before the first packet all addresses of its
    /// record, since some may be unreachable from here.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        let candidates = self.last_source.is_none().then(|| self.record().sockets());
        self.last_source.into_iter().chain(candidates.into_iter().flatten())
    }
}
