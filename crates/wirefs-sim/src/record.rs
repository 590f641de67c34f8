//! What a run tried: what is never tried is not proved.

use std::fmt;
use std::ops::AddAssign;

macro_rules! record {
    ($($(#[$doc:meta])* $field:ident: $word:literal,)*) => {
        /// How often things happened.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Record {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl AddAssign for Record {
            fn add_assign(&mut self, other: Record) {
                $(self.$field += other.$field;)*
            }
        }

        impl fmt::Display for Record {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let counts = [$(($word, self.$field)),*];
                for (at, (word, count)) in counts.iter().enumerate() {
                    let gap = if at == 0 { "" } else { ", " };
                    write!(f, "{gap}{count} {word}")?;
                }
                Ok(())
            }
        }

        impl Record {
            /// What never happened.
            pub fn missing(&self) -> Vec<&'static str> {
                let counts = [$(($word, self.$field)),*];
                counts.iter().filter(|(_, count)| *count == 0).map(|(word, _)| *word).collect()
            }
        }
    };
}

record! {
    /// Runs.
    runs: "runs",
    /// Operations of programs.
    operations: "operations",
    /// Changes that the server carried out.
    changes: "changes",
    /// Changes of programs at the server.
    outside: "changes from outside",
    /// Looks that were answered by a kernel's memory.
    kernel_hits: "looks into a kernel's memory",
    /// Things that were compared with the truth.
    checks: "comparisons with the truth",
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
    /// Sessions that were taken up by another connection.
    resumed: "sessions taken up again",
    /// Sessions that the server did not know any more.
    unknown: "sessions that were over",
    /// Connections that broke.
    cuts: "connections cut",
    /// Lines on which nothing came through for a while.
    stalls: "lines stalled",
    /// Connections that a client gave up.
    hang_ups: "connections given up by clients",
    /// Connections that the server closed.
    closes: "connections closed by the server",
    /// Dials that found nobody.
    refused: "dials in vain",
    /// Clients that died.
    client_crashes: "clients crashed",
    /// Servers that died.
    server_crashes: "servers crashed",
    /// Servers whose machine died.
    boots: "server machines crashed",
    /// Servers that ended in order.
    server_ends: "servers ended in order",
    /// Changes that were sent again and not carried out again.
    replayed: "changes sent again and answered as before",
    /// Calls whose outcome nobody could tell.
    unknown_outcomes: "calls with an unknown outcome",
    /// Calls that waited for the deadline.
    hosts_down: "calls past the deadline",
}
