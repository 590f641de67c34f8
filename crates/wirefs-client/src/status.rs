//! The status of the client, for people.

use crate::core::Client;
use crate::counters::Counters;
use crate::requests::Requests;
use crate::requests::connection::{LinkState, SILENCE_BEFORE_HANG_UP};
use crate::view::View;
use crate::view::bounds::MemoryStatus;
use crate::view::conflicts::Conflicts;
use crate::view::prefetch::PrefetchStatus;
use crate::view::unconfirmed::LateError;
use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_op::Time;
use wirefs_op::message::attach::Watch;

/// The leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseStatus {
    /// Objects known whose attributes are leased.
    pub objects: usize,
    /// Names in listings that are leased.
    pub names: usize,
    /// Whether they are valid at the moment.
    pub are_valid: bool,
    /// Recalls answered since the mount began.
    pub recalls: u64,
    /// Which programs at the server it notices.
    pub watch: Watch,
}

/// How far a mount is ahead of its server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AheadStatus {
    /// Whether the session is exclusive, so that changes are answered before the server has them.
    pub is_alone: bool,
    /// Changes that were answered and that the server has not confirmed.
    pub changes: u64,
    /// Requests that wait for them.
    pub held: usize,
    /// The latest changes that the server rejected although their calls had returned success.
    pub late: Vec<LateError>,
    /// How many there were.
    pub late_count: u64,
    /// Files with delegated locks, which cost no round trip.
    pub lent: usize,
    /// Locks and releases that were answered from these.
    pub locks: u64,
}

/// The client at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Counts since the mount began.
    pub counters: Counters,
    /// Whether there is a connection, and since when.
    pub link: LinkState,
    /// How often the connection was lost.
    pub losses: u64,
    /// Data connections in use beside the first one.
    pub data_connections: usize,
    /// The minimum recent round-trip time.
    pub rtt: Option<Duration>,
    /// The maximum recent rates, in bytes per second, in and out.
    pub rates: (Option<u64>, Option<u64>),
    /// Requests in progress, by kind.
    pub in_flight: BTreeMap<&'static str, u64>,
    /// Those of them without any reply for 8 s, by kind.
    pub late: BTreeMap<&'static str, u64>,
    /// Waits that ended because the connected server did not reply.
    pub timed_out: u64,
    /// Calls that wait for an answer.
    pub calls_waiting: usize,
    /// Bytes written by programs and not yet acknowledged by the server.
    pub unacknowledged_bytes: u64,
    /// Nodes known.
    pub nodes: usize,
    /// Bytes of contents remembered.
    pub cached_bytes: usize,
    /// Bytes of names remembered.
    pub memory: MemoryStatus,
    /// The leases; `None` if the mode or the server has none.
    pub leases: Option<LeaseStatus>,
    /// Prefetched data.
    pub prefetch: PrefetchStatus,
    /// How far this mount is ahead of the server.
    pub ahead: AheadStatus,
    /// Conflict copies.
    pub conflicts: Conflicts,
    /// When this is.
    pub at: Time,
}

impl View {
    fn ahead_status(&self, requests: &Requests) -> AheadStatus {
        AheadStatus {
            is_alone: self.exclusive.unconfirmed.is_alone(),
            changes: self.exclusive.unconfirmed.outstanding(),
            held: requests.held(),
            late: self.exclusive.unconfirmed.late().cloned().collect(),
            late_count: self.exclusive.unconfirmed.late_count,
            lent: self.locks.delegated(),
            locks: self.locks.answered,
        }
    }

    fn lease_status(&self) -> LeaseStatus {
        let coherency = self.coherency();
        LeaseStatus {
            objects: self.names.leased(&coherency),
            names: self.directories.leased(&coherency),
            are_valid: coherency.leases_valid,
            recalls: self.leases.recalls,
            watch: self.leases.watch(),
        }
    }
}

impl Client {
    /// The status at this moment.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            counters: self.outputs.counters.clone(),
            link: self.requests.link.state,
            losses: self.requests.link.losses,
            data_connections: self.requests.data.open(),
            rtt: self.requests.incoming.rtt(),
            rates: (self.requests.incoming.rate(), self.requests.outgoing.rate()),
            in_flight: self.requests.kinds(),
            late: self.requests.late(self.view.mount.now, SILENCE_BEFORE_HANG_UP),
            timed_out: self.requests.link.timed_out,
            calls_waiting: self.waiting(),
            unacknowledged_bytes: self.view.files.unacknowledged(),
            nodes: self.view.names.len(),
            cached_bytes: self.view.files.cached_bytes(),
            memory: self.view.memory(),
            leases: self.view.leases.are_agreed().then(|| self.view.lease_status()),
            prefetch: self.view.prefetch.counted,
            ahead: self.view.ahead_status(&self.requests),
            conflicts: self.view.files.copies.replaced.conflicts.clone(),
            at: self.view.mount.now,
        }
    }

    /// Whether no request is in progress, and no data unacknowledged.
    pub fn is_settled(&self) -> bool {
        self.requests.len() == 0 && self.view.files.unacknowledged() == 0
    }
}

impl Client {
    /// Bounds what is known at once: nodes that the kernel may be told to forget, and entries of listings that are not packed.
    pub fn bound_names(&mut self, nodes_max: usize, entries_max: usize) {
        (self.view.bounds.nodes_max, self.view.bounds.entries_max) = (nodes_max, entries_max);
    }

    /// The bytes of names, listings and contents.
    pub fn counted_bytes(&self) -> usize {
        self.view.bounds.counted
    }

    /// Whether the memory of the process is to be measured: much has come or gone since the last time, or it is long ago.
    pub fn is_measurement_due(&self) -> bool {
        self.view.is_measurement_due()
    }

    /// Notes the bytes that the process takes beside those that are counted: contents make room for them.
    pub fn note_uncounted(&mut self, bytes: usize) {
        self.view.note_uncounted(bytes, &self.calls, &mut self.outputs);
    }
}
