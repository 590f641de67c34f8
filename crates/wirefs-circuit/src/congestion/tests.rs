use super::*;

const PACKET: u64 = 1_500;

/// Sends at the allowed rate over a path of this bandwidth for this long; returns the bytes delivered.
fn drive(rate: &mut CongestionControl, path_rate: u64, span: Duration, mut now: Time) -> u64 {
    let rtt = Duration::from_millis(1);
    let (end, mut free, mut delivered) = (now + span, now, 0);
    let mut in_flight: VecDeque<(Time, Time, RateSnapshot)> = VecDeque::new();
    while now < end {
        let bytes = in_flight.len() as u64 * PACKET;
        if bytes < rate.congestion_window(rtt, PACKET as usize) && rate.next_send_at() <= now {
            let snapshot = rate.on_packet_sent(now, PACKET, !in_flight.is_empty(), rtt);
            free = free.max(now) + Duration::from_nanos(PACKET * 1_000_000_000 / path_rate);
            in_flight.push_back((now, free + rtt, snapshot));
        } else {
            let back = in_flight.front().map(|(_, back, _)| *back);
            let paced = (bytes < rate.congestion_window(rtt, PACKET as usize)).then_some(rate.next_send_at());
            now = [back, paced].into_iter().flatten().min().unwrap_or(end).max(now);
        }
        while let Some((sent_at, _, snapshot)) = in_flight.pop_front_if(|(_, back, _)| *back <= now) {
            delivered += PACKET;
            rate.on_ack(now, PACKET, 0, Some((sent_at, snapshot)), in_flight.len() as u64 * PACKET, rtt);
        }
    }
    delivered
}

#[test]
fn bandwidth_of_a_path_is_estimated_and_used() {
    let mut rate = CongestionControl::new();
    let path_rate = 50_000_000;
    drive(&mut rate, path_rate, Duration::from_millis(200), Time(0));
    let measured = rate.bandwidth().unwrap();
    assert!(measured.abs_diff(path_rate) < path_rate / 20, "{measured}");
    let delivered = drive(&mut rate, path_rate, Duration::from_millis(200), Time(300_000_000));
    assert!(delivered * 5 > path_rate * 95 / 100, "{delivered}");
}

#[test]
fn bandwidth_estimate_follows_a_slower_path() {
    let mut rate = CongestionControl::new();
    drive(&mut rate, 50_000_000, Duration::from_millis(200), Time(0));
    drive(&mut rate, 10_000_000, Duration::from_millis(500), Time(300_000_000));
    let measured = rate.bandwidth().unwrap();
    assert!(measured < 11_000_000, "{measured}");
}

#[test]
fn application_limited_samples_do_not_lower_the_estimate() {
    let mut rate = CongestionControl::new();
    drive(&mut rate, 50_000_000, Duration::from_millis(200), Time(0));
    let before = rate.bandwidth().unwrap();
    let mut now = Time(300_000_000);
    for _ in 0..1_000 {
        let snapshot = rate.on_packet_sent(now, 100, false, Duration::from_millis(1));
        rate.on_app_limited(100);
        let sent_at = now;
        now = now + Duration::from_millis(2);
        rate.on_ack(now, 100, 0, Some((sent_at, snapshot)), 0, Duration::from_millis(1));
    }
    assert!(rate.bandwidth().unwrap() >= before * 9 / 10, "{:?} of {before}", rate.bandwidth());
}

#[test]
fn scaled_agrees_with_and_without_overflow() {
    assert_eq!(scaled(1_500, 1_000_000_000, 7), 214_285_714_285);
    assert_eq!(scaled(u64::MAX, 1_000, 1_000), u64::MAX);
    assert_eq!(scaled(u64::MAX, 2, 1), u64::MAX, "saturates");
    assert_eq!(scaled(5, 5, 0), 25, "no division by zero");
}
