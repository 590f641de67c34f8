//! Random lives: one seed, one run. `make circuits` runs thousands.

use std::time::Duration;

use wirefs_circuit::{Class, Time};
use wirefs_lab::random::Random;
use wirefs_lab::{LaneProfile, Probability};

use crate::traffic::{Flaw, Traffic, Transfer};
use crate::world::{Route, World, us};

/// No run takes longer, in its own time.
const LIFE_MAX: Duration = Duration::from_secs(90);
/// Nor does one of those in which flaws are looked for.
const SHORT_LIFE_MAX: Duration = Duration::from_secs(8);
/// Bytes that a node may hold for one group, with the circuits of these runs.
const HELD_BYTES_MAX: u64 = 160 << 20;

/// Something that happens to the network.
#[derive(Clone, Copy, Debug)]
struct Outage {
    from: Time,
    to: Time,
    segment: u8,
    /// Only what this node sends; else all.
    sender: Option<u8>,
}

struct Run {
    world: World,
    traffic: Traffic,
    outages: Vec<Outage>,
    /// Frames of strangers per millisecond, in percent.
    hostility: u64,
    random: Random,
    next_attack: Time,
    held_bytes_max: u64,
    life: Duration,
}

fn profile(random: &mut Random) -> LaneProfile {
    let mut percent = |most: u64| Probability::percent(random.below(most + 1) as u8);
    let (loss, duplicate, reorder, corrupt) = (percent(10), percent(5), percent(5), percent(3));
    LaneProfile {
        delay: us(20 + random.below(2_000)),
        jitter: us(random.below(500)),
        loss,
        duplicate,
        reorder,
        reorder_delay: us(random.below(4_000)),
        corrupt,
        rate_bits: (random.below(2) == 0).then(|| (20 + random.below(200)) * 1_000_000),
        queue_bytes: None,
    }
}

fn transfer(random: &mut Random) -> Transfer {
    let class = if random.below(3) == 0 { Class::Bulk } else { Class::Request };
    let mut bytes = || match (class, random.below(4)) {
        (_, 0) => 0,
        (_, 1) => random.below(200),
        (Class::Request, _) => random.below(20_000),
        // Enough to fill everything that is bounded on the way.
        (Class::Bulk, _) if random.below(30) == 0 => 3_000_000 + random.below(2_000_000),
        (Class::Bulk, _) => random.below(400_000),
    };
    let bytes = [bytes(), bytes()];
    let starts = Time(1_000_000) + us(random.below(100_000));
    let reset = (random.below(8) == 0).then(|| (random.below(2) == 0, starts + us(random.below(50_000))));
    let scale = 5 + random.below(13);
    Transfer {
        opener: random.below(2) as u8,
        class,
        bytes,
        chunk: 1 + random.below(1 << scale),
        starts,
        reset,
        lazy_us: if random.below(3) == 0 { random.below(20_000) } else { 0 },
    }
}

fn outage(random: &mut Random, cards: u8) -> Outage {
    let from = Time(1_000_000) + us(random.below(300_000));
    let scale = 10 + random.below(12);
    let to = from + us(1_000 + random.below(1 << scale));
    let sender = (random.below(3) == 0).then(|| random.below(2) as u8);
    Outage { from, to, segment: random.below(u64::from(cards)) as u8, sender }
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut random = Random::new(seed);
        let cards = 1 + random.below(3) as u8;
        let card_bytes = [1_500, 1_500, 9_000, 9_000, 700][random.below(5) as usize];
        let mut world = World::new(2, cards, card_bytes, &profile(&mut random), seed);
        for card in 0..cards {
            let own = profile(&mut random);
            world.each_lane(|(_, segment, _)| segment == card, |lane| lane.set_profile(own.clone()));
            if random.below(3) == 0 {
                world.segment_bytes[usize::from(card)] = 1_500 + random.below(7_000) as usize;
            }
        }
        let plan = (0..1 + random.below(12)).map(|_| transfer(&mut random)).collect();
        let outages = (0..random.below(5)).map(|_| outage(&mut random, cards)).collect();
        let traffic = Traffic::new(plan, random.next_u64());
        let hostility = random.below(3) * 100;
        let next_attack = world.now;
        Run { world, traffic, outages, hostility, random, next_attack, held_bytes_max: 0, life: LIFE_MAX }
    }

    fn weather(&mut self) {
        let (now, outages) = (self.world.now, &self.outages);
        let is_out = |(from, segment, _): Route| {
            outages.iter().any(|outage| {
                outage.segment == segment
                    && outage.from <= now
                    && now < outage.to
                    && outage.sender.is_none_or(|sender| sender == from)
            })
        };
        self.world.each_lane(is_out, |lane| lane.cut());
        self.world.each_lane(|route| !is_out(route), |lane| lane.heal());
    }

    /// Strangers on the segment: noise, copies of what passed, copies that were changed, sent on from elsewhere.
    fn attack(&mut self) {
        if self.hostility == 0 || self.next_attack > self.world.now {
            return;
        }
        self.next_attack = self.world.now + us(1 + self.random.below(200_000 / self.hostility));
        let random = &mut self.random;
        let (mut route, mut packet) = match self.world.tap.len() as u64 {
            0 => ((0, 0, 1), Vec::new()),
            count => self.world.tap[random.below(count) as usize].clone(),
        };
        match random.below(6) {
            0 => packet = (0..random.below(200)).map(|_| random.next_u64() as u8).collect(),
            1 => {
                if let Some(byte) = packet.first_mut() {
                    *byte = random.next_u64() as u8;
                }
            }
            2 => {
                let at = random.below(packet.len().max(1) as u64) as usize;
                if let Some(byte) = packet.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
            3 => packet.truncate(random.below(packet.len() as u64 + 1) as usize),
            4 => route = (route.2, route.1, route.0),
            _ => {}
        }
        self.world.send(route, &packet);
    }

    fn go(&mut self) -> Result<(), String> {
        let ways = self.world.ways(1);
        let now = self.world.now;
        self.world.nodes[0]
            .dial(now, &ways, Some(crate::world::node_key(1)))
            .map_err(|fault| fault.to_string())?;
        let end = now + self.life;
        while !self.traffic.is_over() {
            if self.world.now >= end {
                return Err(format!("it does not end: {}", self.traffic.unfinished()));
            }
            self.weather();
            self.attack();
            let mut until = self.traffic.deadline(self.world.now).unwrap_or(end).min(end);
            let changes = self.outages.iter().flat_map(|outage| [outage.from, outage.to]);
            until = changes.filter(|at| *at > self.world.now).chain([until]).fold(until, Time::min);
            if self.hostility > 0 {
                until = until.min(self.next_attack);
            }
            self.world.step(until.max(self.world.now));
            self.traffic.turn(&mut self.world)?;
            self.world.settle();
            self.held_bytes_max =
                self.world.nodes.iter().map(|node| node.held_bytes()).fold(self.held_bytes_max, u64::max);
        }
        self.end()
    }

    /// When all is over, nothing is left, and nobody was blamed.
    fn end(&mut self) -> Result<(), String> {
        self.hostility = 0;
        self.outages.clear();
        self.weather();
        self.world.pass(Duration::from_secs(5));
        self.traffic.turn(&mut self.world)?;
        if !self.traffic.lost.is_empty() {
            return Err(format!("lost: {:?}", self.traffic.lost));
        }
        if self.held_bytes_max > HELD_BYTES_MAX {
            return Err(format!("{} bytes were held", self.held_bytes_max));
        }
        for (number, node) in self.world.nodes.iter_mut().enumerate() {
            let counters = *node.counters();
            let is_sane = counters.taken > 0 && counters.sent > 0;
            if !is_sane {
                return Err(format!("node {number}: {counters:?}"));
            }
        }
        Ok(())
    }
}

fn run(seed: u64, flaw: Option<Flaw>) -> Result<Run, String> {
    let mut run = Run::new(seed);
    run.traffic.flaw = flaw;
    if flaw.is_some() {
        run.life = SHORT_LIFE_MAX;
    }
    run.go().map_err(|wrong| format!("seed {seed}: {wrong}"))?;
    Ok(run)
}

/// A number that `make circuits` gives.
#[expect(clippy::disallowed_methods, reason = "a test has no arguments of its own")]
fn told(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|number| number.parse().ok())
}

#[test]
#[expect(clippy::disallowed_macros, reason = "`make circuits` shows what was run")]
fn whatever_happens_bytes_arrive_in_order_and_once_and_everything_ends() {
    let (mut delivered, mut frames, mut downs) = (0, 0, 0);
    let (first, count) = (told("CIRCUIT_FROM").unwrap_or(0), told("CIRCUIT_SEEDS").unwrap_or(200));
    for seed in first..first + count {
        let run = run(seed, None).unwrap_or_else(|wrong| panic!("{wrong}"));
        delivered += run.traffic.delivered;
        frames += run.world.frames;
        downs += run.traffic.downs;
    }
    println!("{count} seeds from {first}: {delivered} bytes in {frames} frames, {downs} paths died");
    assert!(delivered > count * 1_000);
}

#[test]
fn runs_in_which_flaws_are_looked_for_are_right_without_one() {
    for seed in 1_000..1_010 {
        let run = run(seed, Some(Flaw::None)).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert!(run.traffic.delivered > 0);
    }
}

#[test]
fn each_flaw_that_a_circuit_could_have_is_noticed() {
    for flaw in [
        Flaw::LosesPiece,
        Flaw::DoublesPiece,
        Flaw::SwapsPieces,
        Flaw::FlipsBit,
        Flaw::EndsEarly,
        Flaw::NeverEnds,
    ] {
        let seen = (1_000..1_010).filter(|seed| run(*seed, Some(flaw)).is_err()).count();
        assert!(seen >= 5, "{flaw:?} was noticed in {seen} of 10 runs");
    }
}

#[test]
fn one_seed_is_one_run() {
    let outcome = |seed| {
        let run = run(seed, None).unwrap_or_else(|wrong| panic!("{wrong}"));
        (run.world.now, run.world.frames, run.traffic.delivered, run.held_bytes_max)
    };
    for seed in [3, 17, 40] {
        assert_eq!(outcome(seed), outcome(seed));
    }
}
