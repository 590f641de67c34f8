use super::*;

const LAP: Duration = Duration::from_millis(100);

/// A host as the governor sees it, judged lap by lap, with as much sent as is allowed.
struct World {
    governor: Governor,
    now: Time,
    shortest: Duration,
    has_blocks: bool,
}

impl World {
    fn new(most: u32) -> World {
        let mut governor = Governor::new(Rate::Adaptive { most });
        governor.begin(16, LAP);
        World { governor, now: Time::default(), shortest: LAP, has_blocks: false }
    }

    /// Lets laps pass: for each, `answer` says which part of what is sent comes back, how many replies come in a second,
    /// and after how long.
    fn laps(&mut self, count: usize, mut answer: impl FnMut(f64) -> (f64, f64, Duration)) {
        for _ in 0..count {
            let sent = self.governor.rate() * LAP.as_secs_f64();
            let (part, rate, way) = answer(self.governor.rate());
            let replies = (rate * LAP.as_secs_f64()).round() as u32;
            self.now = self.now + LAP;
            let (sent, answered) = (sent.round() as u64, (sent * part).round() as u64);
            let epoch = Epoch::of(self.now, LAP, sent, answered, replies, way);
            if self.governor.judge(self.now, &epoch, self.shortest, u64::from(self.has_blocks))
                == Judgement::LongerWay
            {
                self.shortest = way;
            }
        }
    }
}

#[test]
fn free_way_is_found_to_carry_the_most_within_a_few_laps() {
    let mut world = World::new(100_000);
    world.laps(12, |rate| (1.0, rate, LAP));
    assert_eq!(world.governor.rate(), 100_000.0);
    assert!(world.governor.is_finding());
}

#[test]
fn host_that_answers_so_many_a_second_is_sent_no_more() {
    let mut world = World::new(1_000_000);
    let limit = 5_000.0;
    let mut asked_too_much = 0;
    world.laps(2_000, |rate| {
        asked_too_much += usize::from(rate > limit);
        ((limit / rate).min(1.0), rate.min(limit), LAP)
    });
    let rate = world.governor.rate();
    assert!((4_000.0..=limit * 1.03).contains(&rate), "{rate}");
    // Once when it was found, and rarely when it was looked beyond: 200 s with waits of 30, 60, 120 s.
    assert!(asked_too_much < 60, "{asked_too_much} of 2,000 laps");
}

#[test]
fn queue_is_noticed_before_it_drops_and_drained() {
    let mut world = World::new(1_000_000);
    world.has_blocks = true;
    let (bottleneck, mut queue) = (20_000.0, 0.0f64);
    let mut deepest = 0.0f64;
    world.laps(300, |rate| {
        queue = (queue + (rate - bottleneck) * LAP.as_secs_f64()).max(0.0);
        deepest = deepest.max(queue / bottleneck);
        let replies = if queue > 0.0 { bottleneck } else { rate };
        (1.0, replies, LAP + Duration::from_secs_f64(queue / bottleneck))
    });
    let rate = world.governor.rate();
    assert!((15_000.0..=21_000.0).contains(&rate), "{rate}");
    assert!(deepest < 0.06, "{deepest} s");
    assert!(queue / bottleneck < 0.01, "{queue} packets wait");
}

#[test]
fn loss_of_the_wire_itself_does_not_cost_rate() {
    for own in [0.99, 0.85] {
        let mut world = World::new(10_000);
        world.laps(200, |rate| (own, own * rate, LAP));
        assert!(world.governor.rate() > 9_000.0, "{own}: {}", world.governor.rate());
    }
}

#[test]
fn longer_way_is_learned_and_does_not_cost_rate() {
    let mut world = World::new(10_000);
    world.laps(20, |rate| (1.0, rate, LAP));
    world.laps(100, |rate| (1.0, rate, LAP * 2));
    assert!(world.governor.rate() > 9_000.0, "{}", world.governor.rate());
    assert_eq!(world.shortest, LAP * 2);
}

#[test]
fn only_what_was_proved_is_relied_on() {
    let mut world = World::new(100_000);
    assert_eq!(world.governor.reliable(), 0.0);
    world.laps(1, |rate| (1.0, rate, LAP));
    assert_eq!((world.governor.reliable(), world.governor.rate()), (0.8 * 160.0, 320.0));
    let limit = 1_000.0;
    world.laps(500, |rate| ((limit / rate).min(1.0), rate.min(limit), LAP));
    assert!((600.0..=810.0).contains(&world.governor.reliable()), "{}", world.governor.reliable());
}

#[test]
fn rate_that_is_not_used_does_not_grow() {
    let mut governor = Governor::new(Rate::Adaptive { most: 1_000_000 });
    governor.begin(16, LAP);
    for lap in 1..100 {
        let now = Time::default() + LAP * lap;
        governor.judge(now, &Epoch::of(now, LAP, 3, 3, 3, LAP), LAP, 1);
    }
    assert_eq!(governor.rate(), 160.0);
}

#[test]
fn fixed_rate_stays() {
    let mut governor = Governor::new(Rate::Fixed(700));
    governor.begin(16, LAP);
    governor.judge(Time(1), &Epoch::of(Time(1), LAP, 70, 7, 7, LAP * 9), LAP, 1);
    assert_eq!(governor.rate(), 700.0);
    assert!(!governor.may_grow(Time(1)));
}

#[test]
fn delay_that_our_own_machine_made_ends_no_search() {
    let mut world = World::new(100_000);
    world.laps(3, |rate| (1.0, rate, LAP));
    let rate = world.governor.rate();
    let late = LAP + Duration::from_millis(60);
    // A whole batch that was held up before it was sent.
    for _ in 0..64 {
        world.governor.hear(world.now, late, 0.0, LAP, true);
    }
    assert!(world.governor.is_finding());
    assert_eq!(world.governor.rate(), rate);
}

#[test]
fn delay_while_little_is_sent_costs_no_rate_unless_it_stays() {
    let mut world = World::new(10_000);
    world.laps(20, |rate| (1.0, rate, LAP));
    let light = |world: &mut World, way: Duration| {
        world.now = world.now + LAP;
        let epoch = Epoch::of(world.now, LAP, 20, 20, 20, way);
        world.governor.judge(world.now, &epoch, LAP, 1);
    };
    for _ in 0..5 {
        light(&mut world, LAP * 2);
        light(&mut world, LAP);
    }
    assert_eq!(world.governor.rate(), 10_000.0);
    (0..20).for_each(|_| light(&mut world, LAP * 2));
    assert!(world.governor.rate() < 10_000.0, "the host has become slower");
}

/// Replies that come behind a queue, so many a second, for a tenth of a second.
fn train(world: &mut World, rate: f64, is_pressed: bool) {
    let late = LAP + Duration::from_millis(20);
    for nth in 0..(rate / 10.0) as u32 {
        let arrived = world.now + Duration::from_secs_f64(f64::from(nth) / rate);
        world.governor.hear(arrived, late, 0.0, LAP, is_pressed);
    }
}

#[test]
fn rate_that_is_held_ends_at_once_where_the_replies_come_much_more_slowly() {
    let holding = || {
        let mut world = World::new(100_000);
        let limit = 10_000.0;
        world.laps(400, |rate| ((limit / rate).min(1.0), rate.min(limit), LAP));
        assert!(!world.governor.is_finding());
        world
    };
    let mut world = holding();
    train(&mut world, 4_000.0, true);
    assert!((2_000.0..=4_000.0).contains(&world.governor.rate()), "{}", world.governor.rate());
    // Not where as much comes as is sent, nor where little is sent: then the replies are few, and the queue is another's.
    for (rate, is_pressed) in [(9_500.0, true), (400.0, false)] {
        let mut world = holding();
        let before = world.governor.rate();
        train(&mut world, rate, is_pressed);
        assert_eq!(world.governor.rate(), before);
    }
}

#[test]
fn delays_that_come_and_go_by_themselves_leave_no_rate_low() {
    // A machine that is held up now and then: what it sends all comes back, late.
    let mut world = World::new(100_000);
    let mut lap = 0;
    world.laps(3_000, |rate| {
        lap += 1;
        (1.0, rate, if lap % 12 == 0 { LAP * 2 } else { LAP })
    });
    assert!(world.governor.rate() > 50_000.0, "{}", world.governor.rate());
}

#[test]
fn replies_to_what_was_sent_before_a_decrease_cause_no_other() {
    let mut world = World::new(100_000);
    let limit = 10_000.0;
    world.laps(400, |rate| ((limit / rate).min(1.0), rate.min(limit), LAP));
    train(&mut world, 4_000.0, true);
    let once = world.governor.rate();
    // They go on coming slowly for as long as the way is.
    world.now = world.now + LAP / 2;
    train(&mut world, 500.0, true);
    assert_eq!(world.governor.rate(), once);
    world.now = world.now + LAP * 4;
    train(&mut world, 500.0, true);
    assert!(world.governor.rate() < once, "{once}");
}

#[test]
fn the_same_holds_where_the_end_of_an_epoch_decreased_it() {
    let mut world = World::new(100_000);
    let limit = 10_000.0;
    world.laps(400, |rate| ((limit / rate).min(1.0), rate.min(limit), LAP));
    let held = world.governor.rate();
    // Some replies behind the queue came before, too few to say something.
    train(&mut world, 100.0, true);
    assert_eq!(world.governor.rate(), held);
    world.laps(1, |rate| (1.0, rate / 4.0, LAP * 2));
    let once = world.governor.rate();
    assert!(once < held, "{once}");
    train(&mut world, 500.0, true);
    assert_eq!(world.governor.rate(), once);
    world.now = world.now + LAP * 4;
    train(&mut world, 500.0, true);
    assert!(world.governor.rate() < once, "{once}");
}

#[test]
fn near_host_is_begun_with_few_packets_a_second() {
    let mut governor = Governor::new(Rate::Adaptive { most: 1_000_000 });
    governor.begin(16, Duration::from_micros(30));
    assert_eq!(governor.rate(), BEGIN_MAX);
}

#[test]
fn delay_that_passes_while_as_much_is_under_way_as_before_costs_no_rate() {
    let holding = || {
        let mut world = World::new(100_000);
        let limit = 10_000.0;
        world.laps(400, |rate| ((limit / rate).min(1.0), rate.min(limit), LAP));
        world
    };
    // What comes behind the queue, so many a second, with no delay: as fast as was sent, faster than the queue was, as slowly.
    for (calm, is_back) in [(1.0, true), (0.7, false), (0.3, false)] {
        let mut world = holding();
        let before = world.governor.rate();
        train(&mut world, 4_000.0, true);
        let eased = world.governor.rate();
        assert!(eased < before);
        world.now = world.now + LAP;
        for nth in 0..64 {
            let arrived = world.now + Duration::from_secs_f64(f64::from(nth) / (before * calm));
            world.governor.hear(arrived, LAP, 0.0, LAP, true);
        }
        let rate = world.governor.rate();
        assert_eq!(rate, if is_back { before } else { eased }, "{calm}");
        // The more was proved to pass, the more is climbed to.
        world.laps(60, |rate| (1.0, rate, LAP));
        let rate = world.governor.rate();
        match calm {
            0.7 => assert!((0.6..0.75).contains(&(rate / before)), "{rate} of {before}"),
            0.3 => assert!(rate < 4_000.0, "{rate} of {before}"),
            _ => assert!(rate >= before, "{rate} of {before}"),
        }
    }
}
