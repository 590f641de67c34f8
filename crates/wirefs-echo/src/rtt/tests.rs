use super::*;

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn steady_samples_yield_an_exact_estimate_without_variation() {
    let mut rtt = RttEstimator::default();
    for step in 0..400 {
        rtt.sample(Time::default() + ms(10) * step, ms(85));
    }
    assert_eq!(rtt.smoothed(), Some(ms(85)));
    assert!(rtt.variation() < Duration::from_micros(10), "{:?}", rtt.variation());
}

#[test]
fn thousands_of_samples_per_rtt_do_not_make_it_jump() {
    let mut rtt = RttEstimator::default();
    rtt.sample(Time::default(), ms(100));
    for step in 0..1_000 {
        rtt.sample(Time::default() + Duration::from_micros(step), ms(200));
    }
    assert_eq!(rtt.smoothed(), Some(ms(100)), "the estimate changes once per RTT/16 at most");
}

#[test]
fn minimum_expires_after_minutes() {
    let mut rtt = RttEstimator::default();
    rtt.sample(Time::default(), ms(5));
    for second in 1..150 {
        rtt.sample(Time::default() + Duration::from_secs(second), ms(9));
    }
    assert_eq!(rtt.min(), Some(ms(5)));
    for second in 150..301 {
        rtt.sample(Time::default() + Duration::from_secs(second), ms(9));
    }
    assert_eq!(rtt.min(), Some(ms(9)));
    rtt.reset_min();
    assert_eq!(rtt.min(), None);
}
