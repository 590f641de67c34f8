//! The state of a request between admission and end.

use super::JobTimes;
use crate::saved_ledger::StartedChange;
use crate::sessions::ConnectionKey;
use crate::tree::{SessionKey, Touched};
use wirefs_lease::HolderKey;
use wirefs_op::{Order, Request, Tag, Weight};

/// The state of a request between admission and end.
#[derive(Debug)]
pub(in crate::sessions) struct Pending {
    pub(in crate::sessions) session: SessionKey,
    /// The lease holder of its session.
    pub(in crate::sessions) holder: Option<HolderKey>,
    pub(in crate::sessions) route: ReplyRoute,
    pub(in crate::sessions) change: ChangeInfo,
    pub(in crate::sessions) park_state: ParkState,
    /// The number of times it was handed out.
    pub(super) attempts: u32,
    /// Objects that it touched while no other session existed.
    pub(in crate::sessions) deferred_touches: Vec<Touched>,
    /// Its result is not wanted, so it does not start again.
    pub(in crate::sessions) is_withdrawn: bool,
    pub(super) order: Order,
    pub(super) weight: Weight,
    pub(super) bytes: usize,
    pub(in crate::sessions) times: JobTimes,
}

/// The destination of a request's replies.
#[derive(Debug)]
pub(in crate::sessions) struct ReplyRoute {
    /// The connection, until the last reply is sent.
    pub(in crate::sessions) connection: Option<ConnectionKey>,
    pub(super) tag: Tag,
    /// Whether the request was received over another connection.
    pub(super) is_moved: bool,
    /// The tags of the Tflush requests that wait for its end.
    pub(super) flushes: Vec<Tag>,
}

/// The properties of a request as a change.
#[derive(Debug)]
pub(in crate::sessions) struct ChangeInfo {
    /// Its change number, if the client numbers its changes.
    pub(in crate::sessions) number: Option<u64>,
    /// Its fingerprint ([`repeat::fingerprint`](crate::repeat::fingerprint)), if it has a number.
    pub(in crate::sessions) fingerprint: u64,
    /// The start record of a former process.
    pub(in crate::sessions) undecided: Option<StartedChange>,
    /// Whether requests may name the object that it creates by its number.
    pub(in crate::sessions) is_creation: bool,
    pub(in crate::sessions) is_lock: bool,
    /// Whether later ordered requests wait for its end.
    pub(super) is_barrier: bool,
    /// Whether its peer may change nothing.
    pub(super) is_refused: bool,
}

/// Whether a job waits for recall answers.
#[derive(Debug, Default)]
pub(in crate::sessions) enum ParkState {
    /// It does not wait.
    #[default]
    Running,
    /// It must wait; the tree is about to return it.
    Parking,
    /// It waits.
    Parked(Box<Request>),
    /// It need not wait any more; the tree is about to return it.
    Resumed,
}

impl Pending {
    /// Whether it waits for recall answers.
    pub(in crate::sessions) fn is_parked(&self) -> bool {
        match self.park_state {
            ParkState::Running => false,
            ParkState::Parking | ParkState::Parked(_) | ParkState::Resumed => true,
        }
    }
}
