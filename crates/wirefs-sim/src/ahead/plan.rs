//! The parameters of a run with an exclusive mount, by seed.

use crate::plan::{Faults, Plan};
use wirefs_cache::Mode;
use wirefs_virtual::{Dice, Span};

/// Parameters of such runs only.
#[derive(Clone, Debug)]
pub(crate) struct AheadPlan {
    /// The server's process is killed, or drains.
    pub(crate) kills: bool,
    /// The server's machine loses power.
    pub(crate) power_cuts: bool,
    /// The client's machine loses power. Not together with the server's: unsynced entries of the journal may be on the server's disk only.
    pub(crate) machine_crashes: bool,
    /// `--fsync=journal`.
    pub(crate) fsync_here: bool,
    /// The delay of the local disk.
    pub(crate) disk: Span,
}

impl Plan {
    /// Returns the plan of a run with one exclusive mount.
    pub(crate) fn ahead(dice: &mut Dice) -> Plan {
        let is_rough = dice.chance(9, 10);
        let mut likely = |part: u64, whole: u64| is_rough && dice.chance(part, whole);
        let faults = Faults {
            cuts: likely(1, 4),
            stalls: likely(1, 5),
            client_crashes: likely(1, 2),
            server_crashes: likely(2, 3),
            outside: false,
        };
        let power_cuts = dice.chance(2, 3);
        let ahead = AheadPlan {
            kills: dice.chance(1, 2),
            power_cuts,
            machine_crashes: !power_cuts && dice.chance(2, 3),
            fsync_here: dice.chance(1, 4),
            disk: dice.one_of(&[(50, 500), (100, 30_000)]),
        };
        Plan {
            spares_opendir: false,
            lists: false,
            locks: false,
            modes: vec![Mode::default()],
            wire: dice.one_of(&[(1_000, 60_000), (100, 3_000), (40_000, 300_000)]),
            server: dice.one_of(&[(0, 30_000), (0, 1_000), (0, 200_000)]),
            kernel: dice.one_of(&[(0, 0), (0, 2_000)]),
            think: dice.one_of(&[(0, 2_000), (0, 60_000), (0, 500_000)]),
            operations: 60 + dice.below(120),
            faults,
            deadline: None,
            cache_bytes_max: dice.one_of(&[64 << 20, 64 << 20, 8 << 10]),
            name_ttl_max: None,
            is_narrow: false,
            ahead: Some(ahead),
            is_rivals: false,
        }
    }

    /// Returns the interval of faults: several in a run, however short.
    pub(crate) fn fault_interval(&self) -> Option<Span> {
        self.ahead.as_ref()?;
        Some((1_000, 1_000 + self.think.1 * 60 + self.wire.1 * 4))
    }
}
