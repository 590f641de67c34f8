use super::*;

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn first_rtt_sample_is_taken_and_later_ones_weigh_an_eighth() {
    let mut rtt = Rtt::new();
    rtt.add_sample(Time(0), ms(80), ms(0));
    assert_eq!((rtt.smoothed(), rtt.variation), (ms(80), ms(40)));
    rtt.add_sample(Time(0), ms(160), ms(0));
    assert_eq!((rtt.smoothed(), rtt.variation), (ms(90), ms(50)));
    assert_eq!(rtt.probe_timeout(), ms(90 + 200) + ACK_DELAY_MAX);
}

#[test]
fn ack_delay_cannot_exceed_the_sample() {
    let mut rtt = Rtt::new();
    rtt.add_sample(Time(0), ms(20), ms(0));
    rtt.add_sample(Time(0), ms(28), ms(1_000));
    assert_eq!((rtt.latest, rtt.min_rtt()), (ms(20), ms(20)));
}

#[test]
fn min_rtt_expires() {
    let mut rtt = Rtt::new();
    rtt.add_sample(Time(0), ms(1), ms(0));
    rtt.add_sample(Time(0) + ms(9_000), ms(5), ms(0));
    assert_eq!(rtt.min_rtt(), ms(1));
    rtt.add_sample(Time(0) + ms(10_001), ms(6), ms(0));
    assert_eq!(rtt.min_rtt(), ms(6));
}

#[test]
fn probe_timeout_doubles_up_to_its_limit() {
    let mut rtt = Rtt::new();
    rtt.add_sample(Time(0), Duration::from_micros(100), ms(0));
    assert_eq!(
        (0..6).map(|n| rtt.probe_timeout_after(n)).collect::<Vec<_>>(),
        [10, 20, 40, 80, 100, 100].map(ms)
    );
}
