//! The pending signals of a caller. FUSE reports the first one only, without its number. `/proc` shows all of them, and
//! a fatal one as SIGKILL (`complete_signal` in Linux's kernel/signal.c).

/// A signal set in the format of `/proc`: signal 1 is the lowest bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Signals(u64);

const KILL: Signals = Signals(1 << 8);
/// SIGHUP, SIGINT, SIGQUIT and SIGTERM, by which a person or a supervisor ends a program. Handlers of other signals
/// mostly restart calls (`SA_RESTART`), as on a local disk, and our answer could not do that.
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

/// The state of a caller that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallerState {
    /// It continues.
    Running,
    /// A signal asks it to end.
    AskedToEnd,
    /// It is being killed, or has exited: no process reads its answer.
    Exiting,
}

/// Returns the state of a thread.
pub(super) fn caller_state(thread: u32) -> CallerState {
    std::fs::read_to_string(format!("/proc/{thread}/status"))
        .map_or(CallerState::Exiting, |status| state_in(&status))
}

fn state_in(status: &str) -> CallerState {
    let (mut pending, mut blocked) = (Signals::default(), Signals::default());
    for (field, value) in status.lines().filter_map(|line| line.split_once(':')) {
        match field {
            "State" if value.trim().starts_with(['Z', 'X']) => return CallerState::Exiting,
            "SigPnd" | "ShdPnd" => pending = pending.and(Signals::parse(value)),
            "SigBlk" => blocked = Signals::parse(value),
            _ => {}
        }
    }
    if pending.has_any_of(KILL) {
        CallerState::Exiting
    } else if pending.without(blocked).has_any_of(END) {
        CallerState::AskedToEnd
    } else {
        CallerState::Running
    }
}

#[cfg(test)]
mod tests;
