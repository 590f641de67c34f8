//! Lines of `/proc/TID/status`, and the signals that they stand for.

use super::*;

fn status(state: &str, thread: u64, process: u64, blocked: u64) -> String {
    format!(
        "Name:\tcat\nState:\t{state}\nSigPnd:\t{thread:016x}\nShdPnd:\t{process:016x}\nSigBlk:\t{blocked:016x}\nSigIgn:\t0\n"
    )
}

const INTERRUPT: u64 = 1 << 1;
const ALARM: u64 = 1 << 13;

#[test]
fn a_pending_signal_to_end_counts_unless_it_is_blocked() {
    let cases = [
        (0, 0, 0, Fate::Lives),
        (ALARM, 0, 0, Fate::Lives),
        (INTERRUPT, 0, 0, Fate::AskedToEnd),
        (0, INTERRUPT, 0, Fate::AskedToEnd),
        (0, INTERRUPT, INTERRUPT, Fate::Lives),
        (KILL.0, INTERRUPT, 0, Fate::Dies),
        (KILL.0, 0, u64::MAX, Fate::Dies),
    ];
    for (thread, process, blocked, expected) in cases {
        let status = status("S (sleeping)", thread, process, blocked);
        assert_eq!(fate_by(&status), expected, "{status}");
    }
}

#[test]
fn a_thread_that_has_ended_dies() {
    assert_eq!(fate_by(&status("Z (zombie)", 0, 0, 0)), Fate::Dies);
    assert_eq!(fate(u32::MAX), Fate::Dies);
    assert_eq!(fate(std::process::id()), Fate::Lives);
}
