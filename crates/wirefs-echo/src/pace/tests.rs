use super::*;

#[test]
fn what_is_sent_never_exceeds_the_rate_by_more_than_the_burst() {
    for rate in [10.0, 1_000.0, 150_000.0] {
        let mut pace = Pace::new();
        let (mut sent, mut now) = (0u64, Time::default());
        for step in 0..10_000u64 {
            now = now + Duration::from_micros(37 + step * 31 % 1_000);
            pace.fill(now, rate);
            while pace.available() > 0 {
                pace.pay();
                sent += 1;
            }
        }
        let earned = now.0 as f64 / 1e9 * rate;
        assert!(sent as f64 <= earned + 1.0, "{sent} at {rate}");
        assert!(sent as f64 >= earned * 0.95 - 2.0, "{sent} of {earned} at {rate}");
    }
}

#[test]
fn it_says_when_the_next_may_go() {
    let mut pace = Pace::new();
    pace.fill(Time(0), 100.0);
    pace.pay();
    assert_eq!(pace.available(), 0);
    let ready = pace.ready(1.0, 100.0);
    assert_eq!(ready, Time(10_000_000));
    pace.fill(ready, 100.0);
    assert_eq!(pace.available(), 1);
    assert_eq!(pace.ready(1.0, 0.0), ready, "it is there already");
    assert!(pace.ready(2.0, 0.0) > Time(u64::MAX / 2), "never");
}
