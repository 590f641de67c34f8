use super::*;

#[test]
fn sent_packets_never_exceed_the_rate_and_the_burst() {
    for rate in [10.0, 1_000.0, 150_000.0] {
        let mut bucket = TokenBucket::new();
        let (mut sent, mut now) = (0u64, Time::default());
        for step in 0..10_000u64 {
            now = now + Duration::from_micros(37 + step * 31 % 1_000);
            bucket.refill(now, rate);
            while bucket.available() > 0 {
                bucket.spend();
                sent += 1;
            }
        }
        let earned = now.0 as f64 / 1e9 * rate;
        assert!(sent as f64 <= earned + 1.0, "{sent} at {rate}");
        assert!(sent as f64 >= earned * 0.95 - 2.0, "{sent} of {earned} at {rate}");
    }
}

#[test]
fn next_token_time_is_returned() {
    let mut bucket = TokenBucket::new();
    bucket.refill(Time(0), 100.0);
    bucket.spend();
    assert_eq!(bucket.available(), 0);
    let ready = bucket.ready_at(1.0, 100.0);
    assert_eq!(ready, Time(10_000_000));
    bucket.refill(ready, 100.0);
    assert_eq!(bucket.available(), 1);
    assert_eq!(bucket.ready_at(1.0, 0.0), ready, "the token is available");
    assert!(bucket.ready_at(2.0, 0.0) > Time(u64::MAX / 2), "never");
}
