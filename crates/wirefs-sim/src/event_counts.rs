//! Counts of the events in a run: an untried event proves nothing.

use crate::Scene;
use std::ops::AddAssign;

macro_rules! event_counts {
    ($($scenes:pat => {$($(#[$doc:meta])* $field:ident: $word:literal,)*})*) => {
        /// Counts of events.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct EventCounts {
            $($($(#[$doc])* pub $field: u64,)*)*
        }

        impl AddAssign for EventCounts {
            fn add_assign(&mut self, other: EventCounts) {
                $($(self.$field += other.$field;)*)*
            }
        }

        impl EventCounts {
            /// Returns the events of a scene with their counts.
            pub fn counts(&self, scene: Scene) -> Vec<(&'static str, u64)> {
                let mut counts = Vec::new();
                $(if matches!(scene, $scenes) {
                    counts.extend([$(($word, self.$field)),*]);
                })*
                counts
            }
        }
    };
}

impl EventCounts {
    /// Returns the events that never happened.
    pub fn missing(&self, scene: Scene) -> Vec<&'static str> {
        self.counts(scene).into_iter().filter(|(_, count)| *count == 0).map(|(word, _)| word).collect()
    }

    /// Describes all counts.
    pub fn summary(&self, scene: Scene) -> String {
        let counts = self.counts(scene).into_iter().map(|(word, count)| format!("{count} {word}"));
        counts.collect::<Vec<_>>().join(", ")
    }
}

event_counts! {
    Scene::Beside | Scene::Ahead | Scene::Rivals => {
        /// Runs.
        runs: "runs",
        /// Operations of programs.
        operations: "operations",
        /// Changes that the server applied.
        changes: "changes",
        /// Comparisons with the true state.
        checks: "comparisons with the truth",
        /// Sessions that another connection took up.
        resumed: "sessions taken up again",
        /// Lost connections.
        cuts: "connections cut",
        /// Stalled network paths.
        stalls: "lines stalled",
        /// Dials without an answer.
        refused: "dials in vain",
        /// Crashed clients.
        client_crashes: "clients crashed",
        /// Crashed server processes.
        server_crashes: "servers crashed",
        /// Crashed server machines.
        boots: "server machines crashed",
        /// Changes that were sent again and answered from the ledger.
        replayed: "changes sent again and answered as before",
    }
    Scene::Beside => {
        /// Changes of programs at the server.
        outside: "changes from outside",
        /// Operations answered from a kernel's cache.
        kernel_hits: "operations answered from a kernel's cache",
        /// Listings answered from a kernel's cache.
        listings: "listings from a kernel's cache",
        /// Recalls.
        recalls: "recalls",
        /// Changes that waited for invalidations by others.
        parked: "changes that waited for others",
        /// Changes that waited until a silent client was fenced.
        waited_out: "changes that waited out the silent",
        /// Leases that were kept over a new connection.
        kept: "leases taken up again",
        /// Leases that were not kept.
        unkept: "leases not kept",
        /// Sessions that the server did not know any more.
        unknown: "sessions that were over",
        /// Connections that a client closed.
        hang_ups: "connections given up by clients",
        /// Connections that the server closed.
        closes: "connections closed by the server",
        /// Servers that drained.
        server_ends: "servers ended in order",
        /// Data connections that clients dialed.
        data_made: "data connections made",
        /// Data connections that were lost while the first connection lived.
        data_lost: "data connections lost",
        /// Replies over data connections.
        data_replies: "replies over data connections",
        /// Replies over data connections that overtook a recall.
        data_before: "replies over data connections that overtook a recall",
        /// Recalls that overtook a reply over a data connection.
        data_behind: "recalls that overtook a reply over a data connection",
        /// Calls with an unknown outcome.
        unknown_outcomes: "calls with an unknown outcome",
        /// Calls that failed at the deadline.
        hosts_down: "calls past the deadline",
    }
    Scene::Ahead => {
        /// Answered syncs.
        syncs: "syncs that were answered",
        /// Power losses of client machines.
        client_power_cuts: "client machines that lost power",
        /// Power losses of client machines during a background sync.
        cut_early: "client machines that lost power during a background sync",
        /// Power losses of server machines.
        server_power_cuts: "server machines that lost power",
        /// Journals of dead mounts that were delivered.
        recovered: "journals of dead mounts delivered",
        /// Journals of dead mounts that were replayed after a power loss of the server's machine.
        redone: "journals of dead mounts replayed",
        /// Journals of running mounts that were replayed.
        redone_live: "journals of running mounts replayed",
        /// Connections that were lost during a delivery.
        broken: "connections lost during a delivery",
        /// Journals in quarantine, because the lost changes could not be determined.
        kept_aside: "journals quarantined as a whole",
    }
    Scene::Rivals => {
        /// Names that programs on mounts created exclusively.
        gained: "names created on mounts",
        /// Names that programs at the server created exclusively.
        gained_outside: "names created at the server",
        /// Failed exclusive creations on mounts.
        lost: "creations on mounts refused",
        /// Failed exclusive creations at the server.
        lost_outside: "creations at the server refused",
    }
}
