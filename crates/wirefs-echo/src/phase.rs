//! Keeps the copies of a block apart in time, which shortens the wait of readers.
//!
//! Jitter lets copies drift together, and two adjacent copies are worth one. A copy that comes back too close
//! behind another is held until the distance is right. All cycles are equally long, so the other copies keep
//! their places. Copies within tolerance are not held, so few contents are in memory: only a drift of a fifth
//! is corrected.

use std::time::Duration;

/// The tolerated part of the right distance; the average wait grows by 4 %.
const TOLERATED: (u32, u32) = (4, 5);
/// Cycles that differ by less than 1/8 are in step.
const IN_STEP: u32 = 8;

/// Returns how long to hold a copy that just arrived, if the last of `copies` was sent `ago` before now.
pub(crate) fn hold_time(cycle: Duration, copies: u32, ago: Duration) -> Option<Duration> {
    let apart = cycle / copies.max(1);
    let (part, whole) = TOLERATED;
    (ago < apart * part / whole).then(|| apart - ago)
}

/// Returns whether copies with these cycles keep their relative positions.
pub(crate) fn is_in_step(cycle: Duration, other: Duration) -> bool {
    cycle.abs_diff(other) <= cycle / IN_STEP
}

#[cfg(test)]
mod tests {
    use super::*;

    const CYCLE: Duration = Duration::from_millis(120);

    #[test]
    fn copies_end_evenly_spread_from_any_start() {
        for copies in 2..6u32 {
            // When each copy comes back next, and when each was sent last.
            let mut back: Vec<Duration> =
                (0..copies).map(|copy| CYCLE + Duration::from_millis(u64::from(copy))).collect();
            let mut sent: Vec<Duration> = back.iter().map(|&back| back - CYCLE).collect();
            for _ in 0..copies * 40 {
                let next = (0..back.len()).min_by_key(|&copy| back[copy]).unwrap();
                let now = back[next];
                let others = (0..back.len()).filter(|&copy| copy != next).map(|copy| sent[copy]);
                // A held copy is not sent yet.
                let ago = others.filter(|&sent| sent <= now).max().map(|latest| now - latest).unwrap();
                sent[next] = now + hold_time(CYCLE, copies, ago).unwrap_or_default();
                back[next] = sent[next] + CYCLE;
            }
            back.sort_unstable();
            let even = CYCLE / copies;
            assert!(back.windows(2).all(|two| two[1] - two[0] >= even * 4 / 5), "{copies}: {back:?}");
            assert!(back[0] + CYCLE - back[copies as usize - 1] >= even * 4 / 5, "{copies}: {back:?}");
        }
    }

    #[test]
    fn copy_in_its_place_is_not_held() {
        assert_eq!(hold_time(CYCLE, 2, Duration::from_millis(60)), None);
        assert_eq!(hold_time(CYCLE, 2, Duration::from_millis(49)), None);
        assert_eq!(hold_time(CYCLE, 2, Duration::from_millis(10)), Some(Duration::from_millis(50)));
        assert!(is_in_step(CYCLE, CYCLE * 9 / 8));
        assert!(!is_in_step(CYCLE, CYCLE * 2));
    }
}
