use super::*;

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn first_round_trip_counts_whole_and_later_ones_an_eighth() {
    let mut rtt = Rtt::new();
    rtt.note(Time(0), ms(80), ms(0));
    assert_eq!((rtt.smoothed(), rtt.variation), (ms(80), ms(40)));
    rtt.note(Time(0), ms(160), ms(0));
    assert_eq!((rtt.smoothed(), rtt.variation), (ms(90), ms(50)));
    assert_eq!(rtt.patience(), ms(90 + 200) + ACK_DELAY_MAX);
}

#[test]
fn peer_cannot_claim_to_have_waited_longer_than_possible() {
    let mut rtt = Rtt::new();
    rtt.note(Time(0), ms(20), ms(0));
    rtt.note(Time(0), ms(28), ms(1_000));
    assert_eq!((rtt.latest, rtt.shortest()), (ms(20), ms(20)));
}

#[test]
fn shortest_is_measured_anew_after_a_while() {
    let mut rtt = Rtt::new();
    rtt.note(Time(0), ms(1), ms(0));
    rtt.note(Time(0) + ms(9_000), ms(5), ms(0));
    assert_eq!(rtt.shortest(), ms(1));
    rtt.note(Time(0) + ms(10_001), ms(6), ms(0));
    assert_eq!(rtt.shortest(), ms(6));
}

#[test]
fn patience_doubles_up_to_its_limit() {
    let mut rtt = Rtt::new();
    rtt.note(Time(0), Duration::from_micros(100), ms(0));
    assert_eq!((0..6).map(|n| rtt.patience_after(n)).collect::<Vec<_>>(), [10, 20, 40, 80, 100, 100].map(ms));
}
