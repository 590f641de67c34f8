use super::*;

const MS: u64 = 1_000_000;

#[test]
fn the_bandwidth_delay_product_is_rate_times_rtt() {
    let mut meter = PathEstimator::default();
    meter.rtt_sample(meter.request_sent(Time(0)), Time(80 * MS));
    let sample = meter.request_sent(Time(100 * MS));
    meter.data_received(1_000_000);
    meter.reply_received(sample, Time(200 * MS));
    assert_eq!(meter.rate(), Some(10_000_000));
    assert_eq!(meter.bdp_bytes(), 800_000);
}

#[test]
fn the_minimal_rtt_counts_until_it_is_old() {
    let mut meter = PathEstimator::default();
    meter.rtt_sample(meter.request_sent(Time(0)), Time(10 * MS));
    meter.rtt_sample(meter.request_sent(Time(0)), Time(50 * MS));
    assert_eq!(meter.rtt(), Some(Duration::from_millis(10)));
    let late = 20_000 * MS;
    meter.rtt_sample(meter.request_sent(Time(late)), Time(late + 50 * MS));
    assert_eq!(meter.rtt(), Some(Duration::from_millis(50)));
}

#[test]
fn bytes_within_a_span_are_0_without_a_recent_sample() {
    let mut meter = PathEstimator::default();
    let span = Duration::from_millis(5);
    assert_eq!(meter.bytes_within(Time(0), span), 0);
    let sample = meter.request_sent(Time(0));
    meter.data_received(1_000_000);
    meter.reply_received(sample, Time(1000 * MS));
    assert_eq!(meter.bytes_within(Time(2000 * MS), span), 5_000);
    assert_eq!(meter.bytes_within(Time(20_000 * MS), span), 0);
}
