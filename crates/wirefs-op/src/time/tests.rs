use super::{Time, Timestamp};
use std::time::Duration;

#[test]
fn time_saturates_at_both_ends() {
    assert_eq!(Time(u64::MAX) + Duration::from_nanos(1), Time(u64::MAX));
    assert_eq!(Time(1) + Duration::MAX, Time(u64::MAX));
    assert_eq!(Time(1).since(Time(2)), Duration::ZERO);
    assert_eq!(Time(5) - Time(2), Duration::from_nanos(3));
}

#[test]
fn a_timestamp_is_formatted_in_utc_to_the_second() {
    let formatted = |secs| Timestamp { secs, nanos: 999_999_999 }.in_utc();
    assert_eq!(formatted(0), "19700101T000000Z");
    assert_eq!(formatted(-1), "19691231T235959Z");
    assert_eq!(formatted(951_782_400), "20000229T000000Z");
    assert_eq!(formatted(951_868_799), "20000229T235959Z");
    assert_eq!(formatted(1_700_000_000), "20231114T221320Z");
    assert_eq!(formatted(4_102_444_799), "20991231T235959Z");
}

#[test]
fn a_timestamps_next_is_a_nanosecond_later() {
    let of = |secs, nanos| Timestamp { secs, nanos };
    assert_eq!(of(1, 5).next(), of(1, 6));
    assert_eq!(of(-1, 999_999_999).next(), of(0, 0));
    assert_eq!(of(i64::MAX, 999_999_999).next(), of(i64::MAX, 999_999_999));
}

#[test]
fn a_timestamp_after_a_span_carries_into_the_seconds() {
    let of = |secs, nanos| Timestamp { secs, nanos };
    assert_eq!(of(1, 600_000_000).after(Duration::from_millis(2_500)), of(4, 100_000_000));
    assert_eq!(of(-1, 0).after(Duration::ZERO), of(-1, 0));
    assert_eq!(of(i64::MAX, 0).after(Duration::from_secs(1)), of(i64::MAX, 0));
}
