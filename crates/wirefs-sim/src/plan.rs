//! The parameters of a run, by seed: clients, delays and faults.

use crate::ahead::AheadPlan;
use std::time::Duration;
use wirefs_cache::Mode;
use wirefs_client::{Config, HostName};
use wirefs_op::Timestamp;
use wirefs_virtual::{Dice, Span};

/// The time of day of a mount before its server reports one.
const DAY: Timestamp = Timestamp { secs: 1_700_000_000, nanos: 0 };

/// Less than the size of some files.
const NARROW_CACHE_BYTES: usize = 8 << 10;

/// The kinds of faults in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    pub(crate) cuts: bool,
    pub(crate) stalls: bool,
    pub(crate) client_crashes: bool,
    pub(crate) server_crashes: bool,
    /// Programs at the server change the tree. This is no fault.
    pub(crate) outside: bool,
}

impl Faults {
    /// Returns whether no faults occur, so nothing has to be waited for.
    pub(crate) fn is_calm(&self) -> bool {
        !(self.cuts || self.stalls || self.client_crashes || self.server_crashes)
    }
}

/// The parameters of one run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) modes: Vec<Mode>,
    pub(crate) wire: Span,
    pub(crate) server: Span,
    pub(crate) kernel: Span,
    pub(crate) think: Span,
    /// Kernels under leases read directories without opening them.
    pub(crate) spares_opendir: bool,
    /// Programs mostly list directories.
    pub(crate) lists: bool,
    /// Programs only lock, read and write a few files.
    pub(crate) locks: bool,
    /// The number of operations of all programs.
    pub(crate) operations: u64,
    pub(crate) faults: Faults,
    pub(crate) deadline: Option<Duration>,
    pub(crate) cache_bytes_max: usize,
    pub(crate) name_ttl_max: Option<Duration>,
    /// Socket buffers limit connections.
    pub(crate) is_narrow: bool,
    /// One exclusive mount.
    pub(crate) ahead: Option<AheadPlan>,
    /// Programs create the same names exclusively.
    pub(crate) is_rivals: bool,
}

impl Plan {
    pub(crate) fn new(dice: &mut Dice) -> Plan {
        let hosts = if dice.chance(1, 4) { 3 } else { 2 };
        let modes = (0..hosts).map(|_| mode(dice)).collect();
        let is_rough = dice.chance(2, 3);
        let mut likely = |part: u64, whole: u64| dice.chance(part, whole);
        let faults = Faults {
            cuts: is_rough && likely(1, 2),
            stalls: is_rough && likely(1, 2),
            client_crashes: is_rough && likely(1, 4),
            server_crashes: is_rough && likely(1, 4),
            outside: likely(1, 3),
        };
        Plan {
            modes,
            wire: dice.one_of(&[(1_000, 60_000), (1_000, 60_000), (100, 3_000), (40_000, 300_000)]),
            server: dice.one_of(&[(0, 30_000), (0, 1_000), (0, 200_000)]),
            kernel: dice.one_of(&[(0, 20_000), (0, 20_000), (0, 0), (0, 400_000)]),
            think: dice.one_of(if is_rough {
                &[(0, 60_000), (0, 500_000), (0, 2_000_000), (0, 4_000_000)]
            } else {
                &[(0, 60_000), (0, 5_000), (0, 500_000)]
            }),
            operations: 50 + dice.below(100),
            faults,
            spares_opendir: dice.chance(3, 4),
            lists: dice.chance(1, 4),
            locks: false,
            deadline: if dice.chance(1, 5) { None } else { Some(Duration::from_secs(10)) },
            cache_bytes_max: dice.one_of(&[64 << 20, 64 << 20, 8 << 10]),
            name_ttl_max: dice.chance(1, 6).then(|| Duration::from_millis(500)),
            is_narrow: false,
            ahead: None,
            is_rivals: false,
        }
    }

    /// Limits connections by socket buffers, and contents by little memory, so that more data is read over connections.
    pub(crate) fn narrow(self) -> Plan {
        Plan { is_narrow: true, cache_bytes_max: NARROW_CACHE_BYTES, ..self }
    }

    /// Gives one mount a mode without cached contents, with cached names and attributes.
    pub(crate) fn direct(mut self) -> Plan {
        if let (Some(first), Ok(direct)) = (self.modes.first_mut(), Mode::parse("direct")) {
            *first = direct;
        }
        self
    }

    /// Lets programs lock files: a client that validates after a window beside those with leases.
    pub(crate) fn locking(mut self) -> Plan {
        if let (Some(first), Ok(window)) = (self.modes.first_mut(), Mode::parse("window")) {
            *first = window;
        }
        Plan { locks: true, lists: false, ..self }
    }

    /// Returns the time after a reconnection in which a client may not know the outcome of changes with lost replies.
    pub(crate) fn outcome_delay_max(&self) -> Duration {
        if self.faults.stalls { Duration::from_secs(45) } else { self.round() }
    }

    /// Returns the time for which a change by a program at the server may stay hidden: until the watch has reported it and the recall has
    /// arrived, or until the leases of a silent client have expired.
    pub(crate) fn external_delay_max(&self) -> Duration {
        let invalidated = Duration::from_millis(700) + self.round();
        if self.faults.is_calm() { invalidated } else { invalidated + Duration::from_secs(25) }
    }

    /// Returns a bound on a round trip with the work on both sides.
    pub(crate) fn round(&self) -> Duration {
        Duration::from_micros(4 * (self.wire.1 + self.kernel.1 + self.server.1)) + Duration::from_millis(500)
    }

    /// Returns whether callers wait for a bounded time only.
    pub(crate) fn has_deadline(&self) -> bool {
        self.deadline.is_some()
    }

    /// Returns whether mounts may be exclusive.
    pub(crate) fn is_ahead(&self) -> bool {
        self.ahead.is_some() || self.is_rivals
    }

    pub(crate) fn config(&self, host: usize) -> Config {
        Config {
            mode: self.modes.get(host).copied().unwrap_or_default(),
            deadline: self.deadline,
            uid: 0,
            gid: 0,
            cache_bytes_max: self.cache_bytes_max,
            name_ttl_max: self.name_ttl_max,
            journal: self.is_ahead(),
            fsync_here: self.ahead.as_ref().is_some_and(|ahead| ahead.fsync_here),
            confines_links: false,
            day: if self.is_ahead() { DAY } else { Timestamp::default() },
            host: HostName::new(b"box"),
        }
    }
}

fn mode(dice: &mut Dice) -> Mode {
    let name = dice.one_of(&["lease", "lease", "lease", "lease", "lease", "strict", "window", "window=50ms"]);
    Mode::parse(name).unwrap_or_default()
}
