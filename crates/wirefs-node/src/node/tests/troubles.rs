//! Loss, kills, returns, cuts, machines that do not run; and mistakes that must be found.

use super::world::{FINE, STORM, Said, World, signer, usual};
use crate::{Config, Liveness, Pace, Signer};
use std::collections::BTreeSet;
use std::time::Duration;

/// So long after a change each table is right.
const SETTLED: Duration = Duration::from_secs(3);

/// Seeds, more by NODE_SEEDS.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    0..option_env!("NODE_SEEDS").and_then(|text| text.parse().ok()).unwrap_or(usual)
}

#[test]
fn nodes_find_each_other_at_once() {
    let mut world = World::with(5, 1, FINE);
    world.run(Duration::from_millis(300));
    world.assert_right("after their start");
    assert_eq!(world.said, []);
}

#[test]
fn a_killed_node_is_dead_within_two_seconds_in_all_tables() {
    for seed in seeds(4) {
        let mut world = World::with(5, seed, FINE);
        world.run(SETTLED);
        world.kill(3);
        world.run(Duration::from_millis(2_300));
        world.assert_right(&format!("seed {seed}"));
        let of_others = world
            .said
            .iter()
            .filter(|said| !matches!(said, Said::Dead { of: 3, .. } | Said::Suspect { of: 3, .. }));
        assert_eq!(of_others.count(), 0, "{:?}", world.said);
    }
}

#[test]
fn a_node_that_leaves_is_gone_at_once_and_not_dead() {
    let mut world = World::with(5, 1, FINE);
    world.run(SETTLED);
    world.leave(2);
    world.run(Duration::from_millis(50));
    world.assert_right("after it left");
    let key = signer(2).0;
    assert!(world.nodes.values().all(|node| node.find(&key).unwrap().state == Liveness::Left));
    assert_eq!(world.said, []);
    world.start(2);
    world.run(Duration::from_millis(500));
    world.assert_right("after it came again");
}

/// Kills and returns in bad weather: each table is right 3 s after each, and nobody is dead who lives.
fn live_through(seed: u64, count: u8, maker: super::world::Maker) -> Result<(), String> {
    let mut world = World::new(seed, STORM, maker);
    (1..=count).for_each(|number| world.start(number));
    world.run(SETTLED);
    let mut down: BTreeSet<u8> = BTreeSet::new();
    for step in 0..4 {
        let number = 1 + u8::try_from(world.chance(usize::from(count))).unwrap();
        if down.remove(&number) {
            world.start(number);
        } else if down.len() + 2 < usize::from(count) {
            down.insert(number);
            world.kill(number);
        }
        let before = world.said.len();
        world.run(SETTLED);
        let false_deaths = world
            .said
            .iter()
            .skip(before)
            .filter(|said| matches!(said, Said::Dead { of, .. } if !down.contains(of) && *of != number));
        if false_deaths.count() > 0 {
            return Err(format!("seed {seed}, step {step}: a false death: {:?}", world.said));
        }
        let up: BTreeSet<_> = world.nodes.keys().map(|number| signer(*number).0).collect();
        for (number, node) in &world.nodes {
            let seen = node.nodes().filter(|view| view.state.is_up()).map(|view| view.record.key);
            if seen.collect::<BTreeSet<_>>() != up {
                return Err(format!("seed {seed}, step {step}: the table of {number}"));
            }
        }
    }
    Ok(())
}

#[test]
fn tables_are_right_three_seconds_after_each_change_and_nobody_dies_falsely() {
    for seed in seeds(5) {
        let count = 5 + u8::try_from(seed % 5).unwrap();
        live_through(seed, count, usual).unwrap();
    }
}

/// A node whose key signs its first word and no later one: it cannot refute.
fn cannot_refute(number: u8, born: u64) -> Config {
    let config = usual(number, born);
    let (_, real) = signer(number);
    let limit = born;
    let signer = Signer::new(move |message| {
        let is_record = message.starts_with(b"wirefs node record\0");
        // purpose 19, version 1, key 32, born 8, then the incarnation.
        let incarnation = message.get(60..68).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
        if is_record && incarnation != Some(limit) { None } else { real.sign(b"", message) }
    });
    Config { signer, ..config }
}

/// No moment between suspicion and death.
fn without_suspicion(number: u8, born: u64) -> Config {
    let pace = Pace { suspicion: Duration::ZERO, helpers: 0, ..Pace::default() };
    Config { pace, ..usual(number, born) }
}

fn finds(maker: super::world::Maker) -> bool {
    (0..40).any(|seed| live_through(seed, 7, maker).is_err())
}

#[test]
fn the_mistake_of_no_refutation_is_found() {
    assert!(finds(cannot_refute));
}

#[test]
fn the_mistake_of_death_without_suspicion_is_found() {
    assert!(finds(without_suspicion));
}

/// Two that cannot hear each other, and others that hear both.
fn suspicions_behind_a_cut(maker: super::world::Maker) -> usize {
    let mut world = World::new(7, FINE, maker);
    (1..=5).for_each(|number| world.start(number));
    world.run(SETTLED);
    world.cuts.insert((1, 2));
    world.run(Duration::from_secs(10));
    world.assert_right("behind a cut");
    world.said.len()
}

fn without_help(number: u8, born: u64) -> Config {
    Config { pace: Pace { helpers: 0, ..Pace::default() }, ..usual(number, born) }
}

#[test]
fn a_cut_between_two_that_others_reach_harms_nobody_thanks_to_their_help() {
    assert_eq!(suspicions_behind_a_cut(usual), 0);
    assert_ne!(suspicions_behind_a_cut(without_help), 0, "the mistake of no help is found");
}

#[test]
fn a_segment_that_is_split_and_joined_again_is_right_again() {
    let mut world = World::with(6, 3, FINE);
    world.run(SETTLED);
    for low in 1..=3 {
        world.cuts.extend((4..=6).map(|high| (low, high)));
    }
    world.run(Duration::from_secs(5));
    let up = |world: &World| {
        let node = &world.nodes[&1];
        node.nodes().filter(|view| view.state.is_up()).count()
    };
    assert_eq!(up(&world), 3);
    world.cuts.clear();
    world.said.clear();
    world.run(SETTLED);
    world.assert_right("joined again");
    let is_dead = |said: &&Said| matches!(said, Said::Dead { .. });
    assert_eq!(world.said.iter().filter(is_dead).count(), 0, "{:?}", world.said);
}

#[test]
fn one_that_was_cut_off_kills_nobody_when_it_is_back() {
    // From short cuts, of which it still has news, to long ones, of which its table tells.
    for seconds in [2, 5, 15] {
        for seed in seeds(2) {
            let mut world = World::with(4, seed, STORM);
            world.run(SETTLED);
            world.cuts.extend((2..=4).map(|other| (1, other)));
            world.run(Duration::from_secs(seconds));
            world.cuts.clear();
            world.said.clear();
            world.run(SETTLED);
            world.assert_right("it is back");
            // Those that were never apart.
            let died = world
                .said
                .iter()
                .filter(|said| matches!(said, Said::Dead { by, of } if *by != 1 && *of != 1));
            assert_eq!(died.count(), 0, "after {seconds} s, seed {seed}: {:?}", world.said);
        }
    }
}

#[test]
fn a_machine_that_did_not_run_blames_nobody() {
    let mut world = World::with(5, 4, FINE);
    world.run(SETTLED);
    world.stall(1, Duration::from_secs(20));
    world.run(Duration::from_secs(20));
    world.said.clear();
    world.run(SETTLED);
    let blamed = world
        .said
        .iter()
        .filter(|said| matches!(said, Said::Suspect { by: 1, .. } | Said::Dead { by: 1, .. }));
    assert_eq!(blamed.count(), 0, "{:?}", world.said);
    world.assert_right("after it runs again");
}

#[test]
fn one_that_is_slow_for_a_second_refutes_in_time() {
    let mut world = World::with(5, 5, FINE);
    world.run(SETTLED);
    world.stall(1, Duration::from_millis(1_000));
    world.run(Duration::from_secs(4));
    assert!(!world.said.iter().any(|said| matches!(said, Said::Dead { .. })), "{:?}", world.said);
    world.assert_right("after it runs again");
}

/// Nodes without a segment between them, that know of the first one only, one started after the other.
fn past_a_peer(config: fn(u8, u64) -> Config, nodes: u8) -> World {
    let mut world = World::new(9, FINE, config);
    world.has_segment = false;
    world.start(1);
    world.run(SETTLED);
    for number in 2..=nodes {
        world.start(number);
        world.run(Duration::from_millis(20));
    }
    world.run(SETTLED);
    world.assert_right("all of them");
    world
}

#[test]
fn nodes_that_only_know_one_peer_all_find_each_other() {
    fn routed(number: u8, born: u64) -> Config {
        Config { peers: vec![super::world::address(1)], ..usual(number, born) }
    }
    past_a_peer(routed, 16);
}

#[test]
fn nodes_whose_first_address_leads_nowhere_find_each_other_past_a_peer() {
    fn routed(number: u8, born: u64) -> Config {
        let addresses = [250, 251, number].map(|last| super::world::address(last).ip()).to_vec();
        Config { peers: vec![super::world::address(1)], addresses, ..usual(number, born) }
    }
    let mut world = past_a_peer(routed, 6);
    world.said.clear();
    world.run(Duration::from_secs(10));
    assert_eq!(world.said, [], "nobody is suspected");
}
