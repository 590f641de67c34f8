//! Whether a process is being killed. The kernel tells us of a first signal only, whichever it is; a fatal one shows as
//! a pending SIGKILL (`complete_signal` in Linux's kernel/signal.c).

const SIGKILL_BIT: u64 = 1 << 8;

/// Whether the thread is being killed or gone.
pub(super) fn is_dying(thread: u32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{thread}/status")) else {
        return true;
    };
    status.lines().any(|line| match line.split_once(":") {
        Some(("SigPnd" | "ShdPnd", mask)) => {
            u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & SIGKILL_BIT != 0)
        }
        Some(("State", state)) => matches!(state.trim().chars().next(), Some('Z' | 'X')),
        _ => false,
    })
}
