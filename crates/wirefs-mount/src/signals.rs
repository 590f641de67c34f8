//! The signals that are pending for a caller. FUSE reports only the first one, without its number; all that are pending show in
//! `/proc`: a fatal signal as SIGKILL (`complete_signal` in Linux's kernel/signal.c).

/// A set of signals, as `/proc` shows it: signal 1 is the lowest bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Signals(u64);

const KILL: Signals = Signals(1 << 8);
/// SIGHUP, SIGINT, SIGQUIT and SIGTERM: by these a person or a supervisor has a program end. Handlers of other signals are mostly such that calls
/// go on behind them (`SA_RESTART`), as on a local disk, which an answer of ours cannot do.
const END: Signals = Signals(1 | 1 << 1 | 1 << 2 | 1 << 14);

impl Signals {
    fn parse(mask: &str) -> Signals {
        Signals(u64::from_str_radix(mask.trim(), 16).unwrap_or_default())
    }

    fn has_any_of(self, others: Signals) -> bool {
        self.0 & others.0 != 0
    }

    fn without(self, others: Signals) -> Signals {
        Signals(self.0 & !others.0)
    }

    fn and(self, others: Signals) -> Signals {
        Signals(self.0 | others.0)
    }
}

/// The fate of a caller that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It goes on.
    Lives,
    /// A signal asks it to end.
    AskedToEnd,
    /// It is being killed, or gone: nobody looks at its answer.
    Dies,
}

/// The fate of a thread.
pub(super) fn fate(thread: u32) -> Fate {
    std::fs::read_to_string(format!("/proc/{thread}/status")).map_or(Fate::Dies, |status| fate_by(&status))
}

fn fate_by(status: &str) -> Fate {
    let (mut pending, mut blocked) = (Signals::default(), Signals::default());
    for (field, value) in status.lines().filter_map(|line| line.split_once(':')) {
        match field {
            "State" if value.trim().starts_with(['Z', 'X']) => return Fate::Dies,
            "SigPnd" | "ShdPnd" => pending = pending.and(Signals::parse(value)),
            "SigBlk" => blocked = Signals::parse(value),
            _ => {}
        }
    }
    if pending.has_any_of(KILL) {
        Fate::Dies
    } else if pending.without(blocked).has_any_of(END) {
        Fate::AskedToEnd
    } else {
        Fate::Lives
    }
}

#[cfg(test)]
mod tests;
