//! Copies of a block are kept apart, so that a reader never waits long for the next.
//!
//! Jitter lets copies drift; two that travel side by side are worth one. A copy that comes back too close behind another
//! is held back until it is as far behind as it should be. The others then have their place too, since all laps are
//! equally long. While the distance is about right nothing is held, so that hardly any contents are in memory: only what
//! has drifted by a fifth is set right.

use std::time::Duration;

/// The part of the right distance that is near enough: of the average wait it costs 4 %.
const TOLERATED: (u32, u32) = (4, 5);
/// Laps that differ by less than this part are in step.
const IN_STEP: u32 = 8;

/// How long to hold back a copy that just came, if the one of `copies` that was sent last was sent so long `ago`.
pub(crate) fn hold(lap: Duration, copies: u32, ago: Duration) -> Option<Duration> {
    let apart = lap / copies.max(1);
    let (part, whole) = TOLERATED;
    (ago < apart * part / whole).then(|| apart - ago)
}

/// Whether copies with such laps stay where they are relative to one another.
pub(crate) fn is_in_step(lap: Duration, other: Duration) -> bool {
    lap.abs_diff(other) <= lap / IN_STEP
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAP: Duration = Duration::from_millis(120);

    #[test]
    fn copies_that_started_anywhere_end_evenly_spread() {
        for copies in 2..6u32 {
            // When each copy comes back next, and when each was sent last.
            let mut back: Vec<Duration> =
                (0..copies).map(|copy| LAP + Duration::from_millis(u64::from(copy))).collect();
            let mut sent: Vec<Duration> = back.iter().map(|&back| back - LAP).collect();
            for _ in 0..copies * 40 {
                let next = (0..back.len()).min_by_key(|&copy| back[copy]).unwrap();
                let now = back[next];
                let others = (0..back.len()).filter(|&copy| copy != next).map(|copy| sent[copy]);
                // One that is held back is not sent yet.
                let ago = others.filter(|&sent| sent <= now).max().map(|latest| now - latest).unwrap();
                sent[next] = now + hold(LAP, copies, ago).unwrap_or_default();
                back[next] = sent[next] + LAP;
            }
            back.sort_unstable();
            let even = LAP / copies;
            assert!(back.windows(2).all(|two| two[1] - two[0] >= even * 4 / 5), "{copies}: {back:?}");
            assert!(back[0] + LAP - back[copies as usize - 1] >= even * 4 / 5, "{copies}: {back:?}");
        }
    }

    #[test]
    fn copy_in_its_place_is_not_held() {
        assert_eq!(hold(LAP, 2, Duration::from_millis(60)), None);
        assert_eq!(hold(LAP, 2, Duration::from_millis(49)), None);
        assert_eq!(hold(LAP, 2, Duration::from_millis(10)), Some(Duration::from_millis(50)));
        assert!(is_in_step(LAP, LAP * 9 / 8));
        assert!(!is_in_step(LAP, LAP * 2));
    }
}
