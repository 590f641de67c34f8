use super::Line;
use std::time::{Duration, Instant};

#[test]
fn the_rate_is_what_a_blocked_carrier_takes() {
    let start = Instant::now();
    let at = |millis| start + Duration::from_millis(millis);
    let mut line = Line::default();
    assert!(!line.is_limit(at(0)));
    line.took(1 << 20);
    assert_eq!(line.rate(), 0.0, "into an empty buffer");
    line.blocked(at(0));
    for step in 1..=40 {
        line.took(10_000);
        line.blocked(at(10 * step));
    }
    assert!((line.rate() - 1e6).abs() < 1.0, "{}", line.rate());
    assert!(line.is_limit(at(1399)));
    assert!(!line.is_limit(at(1400)));
    // After a pause, the buffer was empty again.
    line.took(1 << 20);
    line.blocked(at(5000));
    assert!((line.rate() - 1e6).abs() < 1.0, "{}", line.rate());
    assert!(line.is_limit(at(5001)));
}
