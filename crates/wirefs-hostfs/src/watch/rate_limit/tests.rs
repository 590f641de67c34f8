use super::RateLimit;
use std::time::{Duration, Instant};

const GAP: Duration = Duration::from_millis(100);

#[test]
fn the_action_runs_at_once_and_then_after_the_gap() {
    let start = Instant::now();
    let mut spaced = RateLimit::every(GAP);
    assert_eq!((spaced.deadline(start), spaced.take(start)), (None, false));
    spaced.want();
    assert!(spaced.take(start));
    assert!(!spaced.take(start + GAP), "not wanted again");
    spaced.want();
    assert_eq!(spaced.deadline(start), Some(start + GAP));
    assert!(!spaced.take(start + GAP / 2));
    assert!(spaced.take(start + GAP));
}
