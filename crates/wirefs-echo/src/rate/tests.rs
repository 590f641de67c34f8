use super::*;

const RTT: Duration = Duration::from_millis(100);

/// A simulated host, evaluated once per RTT, with requests at the full rate.
struct SimHost {
    rate_controller: RateController,
    now: Time,
    rtt_min: Duration,
    has_blocks: bool,
}

impl SimHost {
    fn new(max: u32) -> SimHost {
        let mut rate_controller = RateController::new(SendRate::Adaptive { max });
        rate_controller.set_initial_rate(16, RTT);
        SimHost { rate_controller, now: Time::default(), rtt_min: RTT, has_blocks: false }
    }

    /// Simulates `count` RTTs. For a send rate, `answer` returns the delivered part, the reply rate per
    /// second, and the RTT.
    fn rounds(&mut self, count: usize, mut answer: impl FnMut(f64) -> (f64, f64, Duration)) {
        for _ in 0..count {
            let sent = self.rate_controller.rate() * RTT.as_secs_f64();
            let (part, rate, rtt) = answer(self.rate_controller.rate());
            let replies = (rate * RTT.as_secs_f64()).round() as u32;
            self.now = self.now + RTT;
            let (sent, answered) = (sent.round() as u64, (sent * part).round() as u64);
            let interval = MonitorInterval::of(self.now, RTT, sent, answered, replies, rtt);
            if self.rate_controller.evaluate(self.now, &interval, self.rtt_min, u64::from(self.has_blocks))
                == PathChange::Longer
            {
                self.rtt_min = rtt;
            }
        }
    }
}

#[test]
fn free_path_reaches_the_maximum_rate_within_a_few_rtts() {
    let mut sim = SimHost::new(100_000);
    sim.rounds(12, |rate| (1.0, rate, RTT));
    assert_eq!(sim.rate_controller.rate(), 100_000.0);
    assert!(sim.rate_controller.is_startup());
}

#[test]
fn host_with_a_reply_limit_is_sent_no_more() {
    let mut sim = SimHost::new(1_000_000);
    let limit = 5_000.0;
    let mut asked_too_much = 0;
    sim.rounds(2_000, |rate| {
        asked_too_much += usize::from(rate > limit);
        ((limit / rate).min(1.0), rate.min(limit), RTT)
    });
    let rate = sim.rate_controller.rate();
    assert!((4_000.0..=limit * 1.03).contains(&rate), "{rate}");
    // Once during startup, and rarely when probing: 200 s with waits of 30, 60, 120 s.
    assert!(asked_too_much < 60, "{asked_too_much} of 2,000 intervals");
}

#[test]
fn queue_is_detected_and_drained_before_it_drops() {
    let mut sim = SimHost::new(1_000_000);
    sim.has_blocks = true;
    let (bottleneck, mut queue) = (20_000.0, 0.0f64);
    let mut deepest = 0.0f64;
    sim.rounds(300, |rate| {
        queue = (queue + (rate - bottleneck) * RTT.as_secs_f64()).max(0.0);
        deepest = deepest.max(queue / bottleneck);
        let replies = if queue > 0.0 { bottleneck } else { rate };
        (1.0, replies, RTT + Duration::from_secs_f64(queue / bottleneck))
    });
    let rate = sim.rate_controller.rate();
    assert!((15_000.0..=21_000.0).contains(&rate), "{rate}");
    assert!(deepest < 0.06, "{deepest} s");
    assert!(queue / bottleneck < 0.01, "{queue} packets wait");
}

#[test]
fn base_loss_does_not_reduce_the_rate() {
    for own in [0.99, 0.85] {
        let mut sim = SimHost::new(10_000);
        sim.rounds(200, |rate| (own, own * rate, RTT));
        assert!(sim.rate_controller.rate() > 9_000.0, "{own}: {}", sim.rate_controller.rate());
    }
}

#[test]
fn longer_path_is_detected_and_does_not_reduce_the_rate() {
    let mut sim = SimHost::new(10_000);
    sim.rounds(20, |rate| (1.0, rate, RTT));
    sim.rounds(100, |rate| (1.0, rate, RTT * 2));
    assert!(sim.rate_controller.rate() > 9_000.0, "{}", sim.rate_controller.rate());
    assert_eq!(sim.rtt_min, RTT * 2);
}

#[test]
fn only_the_proved_rate_is_admitted() {
    let mut sim = SimHost::new(100_000);
    assert_eq!(sim.rate_controller.reliable(), 0.0);
    sim.rounds(1, |rate| (1.0, rate, RTT));
    assert_eq!((sim.rate_controller.reliable(), sim.rate_controller.rate()), (0.8 * 160.0, 320.0));
    let limit = 1_000.0;
    sim.rounds(500, |rate| ((limit / rate).min(1.0), rate.min(limit), RTT));
    assert!((600.0..=810.0).contains(&sim.rate_controller.reliable()), "{}", sim.rate_controller.reliable());
}

#[test]
fn unused_rate_does_not_grow() {
    let mut rate_controller = RateController::new(SendRate::Adaptive { max: 1_000_000 });
    rate_controller.set_initial_rate(16, RTT);
    for rtt in 1..100 {
        let now = Time::default() + RTT * rtt;
        rate_controller.evaluate(now, &MonitorInterval::of(now, RTT, 3, 3, 3, RTT), RTT, 1);
    }
    assert_eq!(rate_controller.rate(), 160.0);
}

#[test]
fn fixed_rate_stays() {
    let mut rate_controller = RateController::new(SendRate::Fixed(700));
    rate_controller.set_initial_rate(16, RTT);
    rate_controller.evaluate(Time(1), &MonitorInterval::of(Time(1), RTT, 70, 7, 7, RTT * 9), RTT, 1);
    assert_eq!(rate_controller.rate(), 700.0);
    assert!(!rate_controller.may_grow(Time(1)));
}

#[test]
fn delay_of_a_whole_batch_does_not_end_startup() {
    let mut sim = SimHost::new(100_000);
    sim.rounds(3, |rate| (1.0, rate, RTT));
    let rate = sim.rate_controller.rate();
    let late = RTT + Duration::from_millis(60);
    // A whole batch that was delayed before it was sent.
    for _ in 0..64 {
        sim.rate_controller.on_reply(sim.now, late, 0.0, RTT, true);
    }
    assert!(sim.rate_controller.is_startup());
    assert_eq!(sim.rate_controller.rate(), rate);
}

#[test]
fn delay_at_a_light_load_reduces_the_rate_only_if_it_stays() {
    let mut sim = SimHost::new(10_000);
    sim.rounds(20, |rate| (1.0, rate, RTT));
    let light = |sim: &mut SimHost, rtt: Duration| {
        sim.now = sim.now + RTT;
        let interval = MonitorInterval::of(sim.now, RTT, 20, 20, 20, rtt);
        sim.rate_controller.evaluate(sim.now, &interval, RTT, 1);
    };
    for _ in 0..5 {
        light(&mut sim, RTT * 2);
        light(&mut sim, RTT);
    }
    assert_eq!(sim.rate_controller.rate(), 10_000.0);
    (0..20).for_each(|_| light(&mut sim, RTT * 2));
    assert!(sim.rate_controller.rate() < 10_000.0, "the host has become slower");
}

/// Replies behind a queue at this rate, for a tenth of a second.
fn train(sim: &mut SimHost, rate: f64, is_rate_limited: bool) {
    let late = RTT + Duration::from_millis(20);
    for nth in 0..(rate / 10.0) as u32 {
        let arrived = sim.now + Duration::from_secs_f64(f64::from(nth) / rate);
        sim.rate_controller.on_reply(arrived, late, 0.0, RTT, is_rate_limited);
    }
}

#[test]
fn steady_rate_backs_off_at_once_when_replies_become_much_slower() {
    let holding = || {
        let mut sim = SimHost::new(100_000);
        let limit = 10_000.0;
        sim.rounds(400, |rate| ((limit / rate).min(1.0), rate.min(limit), RTT));
        assert!(!sim.rate_controller.is_startup());
        sim
    };
    let mut sim = holding();
    train(&mut sim, 4_000.0, true);
    assert!((2_000.0..=4_000.0).contains(&sim.rate_controller.rate()), "{}", sim.rate_controller.rate());
    // Not if replies arrive as fast as requests, nor at a light load: then the replies are few, and the queue
    // is another's.
    for (rate, is_rate_limited) in [(9_500.0, true), (400.0, false)] {
        let mut sim = holding();
        let before = sim.rate_controller.rate();
        train(&mut sim, rate, is_rate_limited);
        assert_eq!(sim.rate_controller.rate(), before);
    }
}

#[test]
fn recurring_transient_delays_do_not_keep_the_rate_low() {
    // A machine that pauses once in a while: all its packets come back, late.
    let mut sim = SimHost::new(100_000);
    let mut rtt = 0;
    sim.rounds(3_000, |rate| {
        rtt += 1;
        (1.0, rate, if rtt % 12 == 0 { RTT * 2 } else { RTT })
    });
    assert!(sim.rate_controller.rate() > 50_000.0, "{}", sim.rate_controller.rate());
}

#[test]
fn replies_to_packets_sent_before_a_backoff_cause_no_other() {
    let mut sim = SimHost::new(100_000);
    let limit = 10_000.0;
    sim.rounds(400, |rate| ((limit / rate).min(1.0), rate.min(limit), RTT));
    train(&mut sim, 4_000.0, true);
    let once = sim.rate_controller.rate();
    // Slow replies continue for one RTT.
    sim.now = sim.now + RTT / 2;
    train(&mut sim, 500.0, true);
    assert_eq!(sim.rate_controller.rate(), once);
    sim.now = sim.now + RTT * 4;
    train(&mut sim, 500.0, true);
    assert!(sim.rate_controller.rate() < once, "{once}");
}

#[test]
fn replies_after_a_backoff_of_a_monitor_interval_cause_no_other() {
    let mut sim = SimHost::new(100_000);
    let limit = 10_000.0;
    sim.rounds(400, |rate| ((limit / rate).min(1.0), rate.min(limit), RTT));
    let held = sim.rate_controller.rate();
    // Some replies behind the queue arrived before, too few to decide.
    train(&mut sim, 100.0, true);
    assert_eq!(sim.rate_controller.rate(), held);
    sim.rounds(1, |rate| (1.0, rate / 4.0, RTT * 2));
    let once = sim.rate_controller.rate();
    assert!(once < held, "{once}");
    train(&mut sim, 500.0, true);
    assert_eq!(sim.rate_controller.rate(), once);
    sim.now = sim.now + RTT * 4;
    train(&mut sim, 500.0, true);
    assert!(sim.rate_controller.rate() < once, "{once}");
}

#[test]
fn initial_rate_of_a_near_host_is_limited() {
    let mut rate_controller = RateController::new(SendRate::Adaptive { max: 1_000_000 });
    rate_controller.set_initial_rate(16, Duration::from_micros(30));
    assert_eq!(rate_controller.rate(), INITIAL_RATE_MAX);
}

#[test]
fn transient_delay_at_an_unchanged_load_does_not_reduce_the_rate() {
    let holding = || {
        let mut sim = SimHost::new(100_000);
        let limit = 10_000.0;
        sim.rounds(400, |rate| ((limit / rate).min(1.0), rate.min(limit), RTT));
        sim
    };
    // Replies after the queue without delay: as fast as requests were sent, faster than the queue, as slow as
    // the queue.
    for (calm, is_back) in [(1.0, true), (0.7, false), (0.3, false)] {
        let mut sim = holding();
        let before = sim.rate_controller.rate();
        train(&mut sim, 4_000.0, true);
        let backed_off_at = sim.rate_controller.rate();
        assert!(backed_off_at < before);
        sim.now = sim.now + RTT;
        for nth in 0..64 {
            let arrived = sim.now + Duration::from_secs_f64(f64::from(nth) / (before * calm));
            sim.rate_controller.on_reply(arrived, RTT, 0.0, RTT, true);
        }
        let rate = sim.rate_controller.rate();
        assert_eq!(rate, if is_back { before } else { backed_off_at }, "{calm}");
        // The more was proved to pass, the higher the rate climbs.
        sim.rounds(60, |rate| (1.0, rate, RTT));
        let rate = sim.rate_controller.rate();
        match calm {
            0.7 => assert!((0.6..0.75).contains(&(rate / before)), "{rate} of {before}"),
            0.3 => assert!(rate < 4_000.0, "{rate} of {before}"),
            _ => assert!(rate >= before, "{rate} of {before}"),
        }
    }
}
