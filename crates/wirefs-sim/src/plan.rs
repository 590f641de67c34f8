//! What kind of run a seed is: who takes part, how long things take, what goes wrong.

use crate::ahead::AheadPlan;
use std::time::Duration;
use wirefs_cache::Mode;
use wirefs_client::{Config, HostName};
use wirefs_op::Timestamp;
use wirefs_virtual::Dice;

/// At least and at most, in microseconds.
pub(crate) type Span = (u64, u64);

/// The time of day where a mount tells it before its server does.
const DAY: Timestamp = Timestamp { secs: 1_700_000_000, nanos: 0 };

/// Less than some files have.
const NARROW_CACHE_BYTES: usize = 8 << 10;

/// What may go wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Troubles {
    pub(crate) cuts: bool,
    pub(crate) stalls: bool,
    pub(crate) client_crashes: bool,
    pub(crate) server_crashes: bool,
    /// Programs at the server change things. Not of a kind with the others: nothing breaks.
    pub(crate) outside: bool,
}

impl Troubles {
    /// Nothing ever breaks, so nothing has to be waited for.
    pub(crate) fn is_calm(&self) -> bool {
        !(self.cuts || self.stalls || self.client_crashes || self.server_crashes)
    }
}

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) modes: Vec<Mode>,
    pub(crate) wire: Span,
    pub(crate) server: Span,
    pub(crate) kernel: Span,
    pub(crate) think: Span,
    /// Kernels under leases read directories without opening them.
    pub(crate) spares_opendir: bool,
    /// Most of what programs do is to list directories.
    pub(crate) lists: bool,
    /// All that programs do is to lock, read and write few files.
    pub(crate) locks: bool,
    /// Operations of all programs together.
    pub(crate) operations: u64,
    pub(crate) troubles: Troubles,
    pub(crate) deadline: Option<Duration>,
    pub(crate) cache_bytes_max: usize,
    pub(crate) name_ttl_max: Option<Duration>,
    /// Socket buffers limit connections.
    pub(crate) is_narrow: bool,
    /// One mount that is ahead of its server.
    pub(crate) ahead: Option<AheadPlan>,
    /// Programs create the same names exclusively.
    pub(crate) is_rivals: bool,
}

impl Plan {
    pub(crate) fn new(dice: &mut Dice) -> Plan {
        let seats = if dice.chance(1, 4) { 3 } else { 2 };
        let modes = (0..seats).map(|_| mode(dice)).collect();
        let is_rough = dice.chance(2, 3);
        let mut likely = |part: u64, whole: u64| dice.chance(part, whole);
        let troubles = Troubles {
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
            troubles,
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

    /// The same where socket buffers limit connections, with little room for contents, so that more is read over them.
    pub(crate) fn narrow(self) -> Plan {
        Plan { is_narrow: true, cache_bytes_max: NARROW_CACHE_BYTES, ..self }
    }

    /// The same with one mount that keeps no contents, and believes names and attributes.
    pub(crate) fn direct(mut self) -> Plan {
        if let (Some(first), Ok(direct)) = (self.modes.first_mut(), Mode::parse("direct")) {
            *first = direct;
        }
        self
    }

    /// The same where programs lock files: a client that asks after a while beside those that the server tells.
    pub(crate) fn locking(mut self) -> Plan {
        if let (Some(first), Ok(window)) = (self.modes.first_mut(), Mode::parse("window")) {
            *first = window;
        }
        Plan { locks: true, lists: false, ..self }
    }

    /// How long after it is back a client may not know what became of changes whose replies were lost.
    pub(crate) fn lost_is_told(&self) -> Duration {
        if self.troubles.stalls { Duration::from_secs(45) } else { self.round() }
    }

    /// How long what a program at the server did may be hidden: until the watch has noticed it and the recall is there, or
    /// until the leases of a silent client are over.
    pub(crate) fn outside_is_told(&self) -> Duration {
        let noticed = Duration::from_millis(700) + self.round();
        if self.troubles.is_calm() { noticed } else { noticed + Duration::from_secs(25) }
    }

    /// A message and an answer, with what both sides do about them, and some more.
    pub(crate) fn round(&self) -> Duration {
        Duration::from_micros(4 * (self.wire.1 + self.kernel.1 + self.server.1)) + Duration::from_millis(500)
    }

    /// Whether callers wait for a bounded time only.
    pub(crate) fn has_deadline(&self) -> bool {
        self.deadline.is_some()
    }

    /// Whether mounts may be ahead of the server.
    pub(crate) fn is_ahead(&self) -> bool {
        self.ahead.is_some() || self.is_rivals
    }

    pub(crate) fn config(&self, seat: usize) -> Config {
        Config {
            mode: self.modes.get(seat).copied().unwrap_or_default(),
            deadline: self.deadline,
            uid: 0,
            gid: 0,
            cache_bytes_max: self.cache_bytes_max,
            name_ttl_max: self.name_ttl_max,
            journal: self.is_ahead(),
            fsync_here: self.ahead.as_ref().is_some_and(|ahead| ahead.fsync_here),
            day: if self.is_ahead() { DAY } else { Timestamp::default() },
            host: HostName::new(b"box"),
        }
    }
}

fn mode(dice: &mut Dice) -> Mode {
    let name = dice.one_of(&["lease", "lease", "lease", "lease", "lease", "strict", "window", "window=50ms"]);
    Mode::parse(name).unwrap_or_default()
}
