use super::*;

const PACKET: u64 = 1_500;

/// Sends as the window allows over a path that carries this rate, for this long; returns what was delivered.
fn drive(rate: &mut Rate, path_rate: u64, span: Duration, mut now: Time) -> u64 {
    let rtt = Duration::from_millis(1);
    let (end, mut free, mut delivered) = (now + span, now, 0);
    let mut flying: VecDeque<(Time, Time, Mark)> = VecDeque::new();
    while now < end {
        let bytes = flying.len() as u64 * PACKET;
        if bytes < rate.window(rtt, PACKET as usize) && rate.next() <= now {
            let mark = rate.leave(now, PACKET, !flying.is_empty(), rtt);
            free = free.max(now) + Duration::from_nanos(PACKET * 1_000_000_000 / path_rate);
            flying.push_back((now, free + rtt, mark));
        } else {
            let back = flying.front().map(|(_, back, _)| *back);
            let paced = (bytes < rate.window(rtt, PACKET as usize)).then_some(rate.next());
            now = [back, paced].into_iter().flatten().min().unwrap_or(end).max(now);
        }
        while let Some((sent_at, _, mark)) = flying.pop_front_if(|(_, back, _)| *back <= now) {
            delivered += PACKET;
            rate.learn(now, PACKET, 0, Some((sent_at, mark)), flying.len() as u64 * PACKET, rtt);
        }
    }
    delivered
}

#[test]
fn rate_of_a_path_is_found_and_used_up() {
    let mut rate = Rate::new();
    let path_rate = 50_000_000;
    drive(&mut rate, path_rate, Duration::from_millis(200), Time(0));
    let measured = rate.measured().unwrap();
    assert!(measured.abs_diff(path_rate) < path_rate / 20, "{measured}");
    let delivered = drive(&mut rate, path_rate, Duration::from_millis(200), Time(300_000_000));
    assert!(delivered * 5 > path_rate * 95 / 100, "{delivered}");
}

#[test]
fn path_that_becomes_slower_is_noticed() {
    let mut rate = Rate::new();
    drive(&mut rate, 50_000_000, Duration::from_millis(200), Time(0));
    drive(&mut rate, 10_000_000, Duration::from_millis(500), Time(300_000_000));
    let measured = rate.measured().unwrap();
    assert!(measured < 11_000_000, "{measured}");
}

#[test]
fn user_that_sends_little_does_not_make_a_path_slow() {
    let mut rate = Rate::new();
    drive(&mut rate, 50_000_000, Duration::from_millis(200), Time(0));
    let before = rate.measured().unwrap();
    let mut now = Time(300_000_000);
    for _ in 0..1_000 {
        let mark = rate.leave(now, 100, false, Duration::from_millis(1));
        rate.idle(100);
        let sent_at = now;
        now = now + Duration::from_millis(2);
        rate.learn(now, 100, 0, Some((sent_at, mark)), 0, Duration::from_millis(1));
    }
    assert!(rate.measured().unwrap() >= before * 9 / 10, "{:?} of {before}", rate.measured());
}

#[test]
fn scaled_is_the_same_whether_the_product_has_room_or_not() {
    assert_eq!(scaled(1_500, 1_000_000_000, 7), 214_285_714_285);
    assert_eq!(scaled(u64::MAX, 1_000, 1_000), u64::MAX);
    assert_eq!(scaled(u64::MAX, 2, 1), u64::MAX, "at most");
    assert_eq!(scaled(5, 5, 0), 25, "nobody divides by nothing");
}
