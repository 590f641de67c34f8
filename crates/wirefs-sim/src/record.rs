//! What a run tried: what is never tried is not proved.

use crate::Scene;
use std::ops::AddAssign;

macro_rules! record {
    ($($scenes:pat => {$($(#[$doc:meta])* $field:ident: $word:literal,)*})*) => {
        /// How often things happened.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Record {
            $($($(#[$doc])* pub $field: u64,)*)*
        }

        impl AddAssign for Record {
            fn add_assign(&mut self, other: Record) {
                $($(self.$field += other.$field;)*)*
            }
        }

        impl Record {
            /// What may happen in a scene, and how often it did.
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

impl Record {
    /// What never happened.
    pub fn missing(&self, scene: Scene) -> Vec<&'static str> {
        self.counts(scene).into_iter().filter(|(_, count)| *count == 0).map(|(word, _)| word).collect()
    }

    /// All that happened, in words.
    pub fn told(&self, scene: Scene) -> String {
        let counts = self.counts(scene).into_iter().map(|(word, count)| format!("{count} {word}"));
        counts.collect::<Vec<_>>().join(", ")
    }
}

record! {
    Scene::Beside | Scene::Ahead | Scene::Rivals => {
        /// Runs.
        runs: "runs",
        /// Operations of programs.
        operations: "operations",
        /// Changes that the server carried out.
        changes: "changes",
        /// Things that were compared with the truth.
        checks: "comparisons with the truth",
        /// Sessions that were taken up by another connection.
        resumed: "sessions taken up again",
        /// Connections that broke.
        cuts: "connections cut",
        /// Lines on which nothing came through for a while.
        stalls: "lines stalled",
        /// Dials that found nobody.
        refused: "dials in vain",
        /// Clients that died.
        client_crashes: "clients crashed",
        /// Servers that died.
        server_crashes: "servers crashed",
        /// Servers whose machine died.
        boots: "server machines crashed",
        /// Changes that were sent again and not carried out again.
        replayed: "changes sent again and answered as before",
    }
    Scene::Beside => {
        /// Changes of programs at the server.
        outside: "changes from outside",
        /// Looks that were answered by a kernel's memory.
        kernel_hits: "looks into a kernel's memory",
        /// Listings that were answered by a kernel's memory.
        listings: "listings in a kernel's memory",
        /// Recalls that were sent.
        recalls: "recalls",
        /// Changes that were put aside until others had forgotten.
        parked: "changes that waited for others",
        /// Changes that waited until a silent client was given up.
        waited_out: "changes that waited out the silent",
        /// Leases that were taken up again.
        kept: "leases taken up again",
        /// Leases that were not kept.
        unkept: "leases not kept",
        /// Sessions that the server did not know any more.
        unknown: "sessions that were over",
        /// Connections that a client gave up.
        hang_ups: "connections given up by clients",
        /// Connections that the server closed.
        closes: "connections closed by the server",
        /// Servers that ended in order.
        server_ends: "servers ended in order",
        /// Data connections that clients dialled.
        data_made: "data connections made",
        /// Data connections that were lost while the first connection stood.
        data_lost: "data connections lost",
        /// Replies that came over data connections.
        data_replies: "replies over data connections",
        /// Replies over data connections that came before a recall that was sent before them.
        data_before: "replies over data connections that overtook a recall",
        /// Recalls that came before a reply over a data connection that was sent before them.
        data_behind: "recalls that overtook a reply over a data connection",
        /// Calls whose outcome nobody could tell.
        unknown_outcomes: "calls with an unknown outcome",
        /// Calls that waited for the deadline.
        hosts_down: "calls past the deadline",
    }
    Scene::Ahead => {
        /// Times that everything up to then had to be on a disk.
        syncs: "syncs that were answered",
        /// Clients whose machine lost power, and what its disk did not have.
        client_power_cuts: "client machines that lost power",
        /// The same, while the disk synced what nobody waited for yet.
        cut_early: "client machines that lost power while the disk was early",
        /// Servers whose machine lost power, and what its disk did not have.
        server_power_cuts: "server machines that lost power",
        /// Journals of dead mounts that were brought to the server.
        recovered: "journals of dead mounts brought to the server",
        /// What a server's machine had lost was done again out of the journal of a mount that had died.
        redone: "journals of dead mounts done again",
        /// The same, of one that lived.
        redone_live: "journals of living mounts done again",
        /// Connections that broke while a journal was brought.
        broken: "connections that broke on the way",
        /// Journals of which it could not be told what the server's machine had lost: several moments, or others who may have been there.
        kept_aside: "journals kept aside whole",
    }
    Scene::Rivals => {
        /// Names that programs on mounts created exclusively.
        gained: "names created on mounts",
        /// Names that programs at the server created exclusively.
        gained_outside: "names created at the server",
        /// Exclusive creations on mounts of names that were there.
        lost: "creations on mounts refused",
        /// Exclusive creations at the server of names that were there.
        lost_outside: "creations at the server refused",
    }
}
