use super::Time;
use std::time::Duration;

#[test]
fn time_never_runs_past_its_ends() {
    assert_eq!(Time(u64::MAX) + Duration::from_nanos(1), Time(u64::MAX));
    assert_eq!(Time(1) + Duration::MAX, Time(u64::MAX));
    assert_eq!(Time(1).since(Time(2)), Duration::ZERO);
    assert_eq!(Time(5) - Time(2), Duration::from_nanos(3));
}
