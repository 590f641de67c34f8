//! Random simulations, one per seed. `make circuits` runs thousands.

use std::time::Duration;

use wirefs_circuit::{CircuitClass, Time};
use wirefs_lab::random::Random;
use wirefs_lab::{LaneProfile, Probability};

use crate::network::{Route, SimNetwork, us};
use crate::traffic::{Flaw, Traffic, Transfer};

/// The maximum simulated time of a run.
const LIFE_MAX: Duration = Duration::from_secs(90);
/// The maximum simulated time of a run with an injected flaw.
const SHORT_LIFE_MAX: Duration = Duration::from_secs(8);
/// The maximum memory of a node in these runs, in bytes.
const HELD_BYTES_MAX: u64 = 160 << 20;

/// A network outage.
#[derive(Clone, Copy, Debug)]
struct Outage {
    from: Time,
    to: Time,
    segment: u8,
    /// Affects only packets of this node; `None`: all.
    sender: Option<u8>,
}

struct Run {
    network: SimNetwork,
    traffic: Traffic,
    outages: Vec<Outage>,
    /// Attack frames per millisecond, in percent.
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
    let class = if random.below(3) == 0 { CircuitClass::Bulk } else { CircuitClass::Request };
    let mut bytes = || match (class, random.below(4)) {
        (_, 0) => 0,
        (_, 1) => random.below(200),
        (CircuitClass::Request, _) => random.below(20_000),
        // Enough to fill all bounded buffers.
        (CircuitClass::Bulk, _) if random.below(30) == 0 => 3_000_000 + random.below(2_000_000),
        (CircuitClass::Bulk, _) => random.below(400_000),
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
        let mut network = SimNetwork::new(2, cards, card_bytes, &profile(&mut random), seed);
        for card in 0..cards {
            let own = profile(&mut random);
            network.each_lane(|(_, segment, _)| segment == card, |lane| lane.set_profile(own.clone()));
            if random.below(3) == 0 {
                network.segment_bytes[usize::from(card)] = 1_500 + random.below(7_000) as usize;
            }
        }
        let plan = (0..1 + random.below(12)).map(|_| transfer(&mut random)).collect();
        let outages = (0..random.below(5)).map(|_| outage(&mut random, cards)).collect();
        let traffic = Traffic::new(plan, random.next_u64());
        let hostility = random.below(3) * 100;
        let next_attack = network.now;
        Run { network, traffic, outages, hostility, random, next_attack, held_bytes_max: 0, life: LIFE_MAX }
    }

    fn weather(&mut self) {
        let (now, outages) = (self.network.now, &self.outages);
        let is_out = |(from, segment, _): Route| {
            outages.iter().any(|outage| {
                outage.segment == segment
                    && outage.from <= now
                    && now < outage.to
                    && outage.sender.is_none_or(|sender| sender == from)
            })
        };
        self.network.each_lane(is_out, |lane| lane.cut());
        self.network.each_lane(|route| !is_out(route), |lane| lane.heal());
    }

    /// Injects attack frames: noise, replays, modified and misdirected copies.
    fn attack(&mut self) {
        if self.hostility == 0 || self.next_attack > self.network.now {
            return;
        }
        self.next_attack = self.network.now + us(1 + self.random.below(200_000 / self.hostility));
        let random = &mut self.random;
        let (mut route, mut packet) = match self.network.tap.len() as u64 {
            0 => ((0, 0, 1), Vec::new()),
            count => self.network.tap[random.below(count) as usize].clone(),
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
        self.network.send(route, &packet);
    }

    fn go(&mut self) -> Result<(), String> {
        let network_paths = self.network.network_paths(1);
        let now = self.network.now;
        self.network.nodes[0]
            .dial(now, &network_paths, Some(crate::network::node_key(1)))
            .map_err(|fault| fault.to_string())?;
        let end = now + self.life;
        while !self.traffic.is_over() {
            if self.network.now >= end {
                return Err(format!("the run does not end: {}", self.traffic.unfinished()));
            }
            self.weather();
            self.attack();
            let mut until = self.traffic.deadline(self.network.now).unwrap_or(end).min(end);
            let changes = self.outages.iter().flat_map(|outage| [outage.from, outage.to]);
            until = changes.filter(|at| *at > self.network.now).chain([until]).fold(until, Time::min);
            if self.hostility > 0 {
                until = until.min(self.next_attack);
            }
            self.network.step(until.max(self.network.now));
            self.traffic.run_due(&mut self.network)?;
            self.network.settle();
            self.held_bytes_max =
                self.network.nodes.iter().map(|node| node.held_bytes()).fold(self.held_bytes_max, u64::max);
        }
        self.end()
    }

    /// Checks the state after the run: nothing was lost, and memory stayed within its limit.
    fn end(&mut self) -> Result<(), String> {
        self.hostility = 0;
        self.outages.clear();
        self.weather();
        self.network.pass(Duration::from_secs(5));
        self.traffic.run_due(&mut self.network)?;
        if !self.traffic.lost.is_empty() {
            return Err(format!("lost: {:?}", self.traffic.lost));
        }
        if self.held_bytes_max > HELD_BYTES_MAX {
            return Err(format!("{} bytes were held", self.held_bytes_max));
        }
        for (number, node) in self.network.nodes.iter_mut().enumerate() {
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

/// Returns a number from the environment, as set by `make circuits`.
#[expect(clippy::disallowed_methods, reason = "tests take no arguments")]
fn env_number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|number| number.parse().ok())
}

#[test]
#[expect(clippy::disallowed_macros, reason = "`make circuits` shows what was run")]
fn bytes_arrive_in_order_and_once_under_all_faults() {
    let (mut delivered, mut frames, mut downs) = (0, 0, 0);
    let (first, count) =
        (env_number("CIRCUIT_FROM").unwrap_or(0), env_number("CIRCUIT_SEEDS").unwrap_or(200));
    for seed in first..first + count {
        let run = run(seed, None).unwrap_or_else(|wrong| panic!("{wrong}"));
        delivered += run.traffic.delivered;
        frames += run.network.frames;
        downs += run.traffic.downs;
    }
    println!("{count} seeds from {first}: {delivered} bytes in {frames} frames, {downs} paths died");
    assert!(delivered > count * 1_000);
}

#[test]
fn runs_without_an_injected_flaw_pass() {
    for seed in 1_000..1_010 {
        let run = run(seed, Some(Flaw::None)).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert!(run.traffic.delivered > 0);
    }
}

#[test]
fn every_injected_flaw_is_detected() {
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
fn simulation_is_deterministic() {
    let outcome = |seed| {
        let run = run(seed, None).unwrap_or_else(|wrong| panic!("{wrong}"));
        (run.network.now, run.network.frames, run.traffic.delivered, run.held_bytes_max)
    };
    for seed in [3, 17, 40] {
        assert_eq!(outcome(seed), outcome(seed));
    }
}
