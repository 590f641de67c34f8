//! Lines of `/proc/TID/status` and their signals.

use super::*;

fn status(state: &str, thread: u64, process: u64, blocked: u64) -> String {
    format!(
        "Name:\tcat\nState:\t{state}\nSigPnd:\t{thread:016x}\nShdPnd:\t{process:016x}\nSigBlk:\t{blocked:016x}\nSigIgn:\t0\n"
    )
}

const INTERRUPT: u64 = 1 << 1;
const ALARM: u64 = 1 << 13;

#[test]
fn pending_end_signal_counts_unless_it_is_blocked() {
    let cases = [
        (0, 0, 0, CallerState::Running),
        (ALARM, 0, 0, CallerState::Running),
        (INTERRUPT, 0, 0, CallerState::AskedToEnd),
        (0, INTERRUPT, 0, CallerState::AskedToEnd),
        (0, INTERRUPT, INTERRUPT, CallerState::Running),
        (KILL.0, INTERRUPT, 0, CallerState::Exiting),
        (KILL.0, 0, u64::MAX, CallerState::Exiting),
    ];
    for (thread, process, blocked, expected) in cases {
        let status = status("S (sleeping)", thread, process, blocked);
        assert_eq!(state_in(&status), expected, "{status}");
    }
}

#[test]
fn ended_thread_is_exiting() {
    assert_eq!(state_in(&status("Z (zombie)", 0, 0, 0)), CallerState::Exiting);
    assert_eq!(caller_state(u32::MAX), CallerState::Exiting);
    assert_eq!(caller_state(std::process::id()), CallerState::Running);
}
