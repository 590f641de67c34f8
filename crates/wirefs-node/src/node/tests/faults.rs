//! Loss, crashes, restarts, partitions, stalls; and seeded bugs that the tests must find.

use super::network::{Event, LOSSY, NO_FAULTS, TestNetwork, default_config, signer};
use crate::{Liveness, NodeConfig, ProbeTiming, Signer};
use std::collections::BTreeSet;
use std::time::Duration;

/// The time in which all tables converge after a change.
const SETTLED: Duration = Duration::from_secs(3);

/// Returns the seeds to run; NODE_SEEDS sets their number.
fn seeds(default_count: u64) -> std::ops::Range<u64> {
    0..option_env!("NODE_SEEDS").and_then(|text| text.parse().ok()).unwrap_or(default_count)
}

#[test]
fn nodes_discover_each_other_at_once() {
    let mut network = TestNetwork::with(5, 1, NO_FAULTS);
    network.run(Duration::from_millis(300));
    network.assert_converged("after their start");
    assert_eq!(network.events, []);
}

#[test]
fn crashed_node_is_dead_within_two_seconds_in_all_tables() {
    for seed in seeds(4) {
        let mut network = TestNetwork::with(5, seed, NO_FAULTS);
        network.run(SETTLED);
        network.kill(3);
        network.run(Duration::from_millis(2_300));
        network.assert_converged(&format!("seed {seed}"));
        let of_others = network
            .events
            .iter()
            .filter(|event| !matches!(event, Event::Dead { of: 3, .. } | Event::Suspect { of: 3, .. }));
        assert_eq!(of_others.count(), 0, "{:?}", network.events);
    }
}

#[test]
fn leaving_node_is_left_at_once_and_not_dead() {
    let mut network = TestNetwork::with(5, 1, NO_FAULTS);
    network.run(SETTLED);
    network.leave(2);
    network.run(Duration::from_millis(50));
    network.assert_converged("after it left");
    let key = signer(2).0;
    assert!(network.nodes.values().all(|node| node.find(&key).unwrap().state == Liveness::Left));
    assert_eq!(network.events, []);
    network.start(2);
    network.run(Duration::from_millis(500));
    network.assert_converged("after it came again");
}

/// Crashes and restarts on a lossy network: each table is right 3 s after each, and no live node is declared dead.
fn run_churn(seed: u64, count: u8, make_config: super::network::MakeConfig) -> Result<(), String> {
    let mut network = TestNetwork::new(seed, LOSSY, make_config);
    (1..=count).for_each(|number| network.start(number));
    network.run(SETTLED);
    let mut down: BTreeSet<u8> = BTreeSet::new();
    for step in 0..4 {
        let number = 1 + u8::try_from(network.random(usize::from(count))).unwrap();
        if down.remove(&number) {
            network.start(number);
        } else if down.len() + 2 < usize::from(count) {
            down.insert(number);
            network.kill(number);
        }
        let before = network.events.len();
        network.run(SETTLED);
        let false_deaths =
            network.events.iter().skip(before).filter(
                |event| matches!(event, Event::Dead { of, .. } if !down.contains(of) && *of != number),
            );
        if false_deaths.count() > 0 {
            return Err(format!("seed {seed}, step {step}: a false death: {:?}", network.events));
        }
        let reachable: BTreeSet<_> = network.nodes.keys().map(|number| signer(*number).0).collect();
        for (number, node) in &network.nodes {
            let seen = node.nodes().filter(|view| view.state.is_up()).map(|view| view.record.key);
            if seen.collect::<BTreeSet<_>>() != reachable {
                return Err(format!("seed {seed}, step {step}: the table of {number}"));
            }
        }
    }
    Ok(())
}

#[test]
fn tables_converge_in_three_seconds_without_false_deaths() {
    for seed in seeds(5) {
        let count = 5 + u8::try_from(seed % 5).unwrap();
        run_churn(seed, count, default_config).unwrap();
    }
}

/// A node whose key signs its first record and no later one: it cannot refute.
fn cannot_refute(number: u8, born: u64) -> NodeConfig {
    let config = default_config(number, born);
    let (_, real) = signer(number);
    let limit = born;
    let signer = Signer::new(move |message| {
        let is_record = message.starts_with(b"wirefs node record\0");
        // The prefix has 19 bytes, the version 1, the key 32, the start time 8; the incarnation follows.
        let incarnation = message.get(60..68).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
        if is_record && incarnation != Some(limit) { None } else { real.sign(b"", message) }
    });
    NodeConfig { signer, ..config }
}

/// No time between suspicion and death.
fn without_suspicion(number: u8, born: u64) -> NodeConfig {
    let timing = ProbeTiming { suspicion_timeout: Duration::ZERO, helpers: 0, ..ProbeTiming::default() };
    NodeConfig { timing, ..default_config(number, born) }
}

fn detects(make_config: super::network::MakeConfig) -> bool {
    (0..40).any(|seed| run_churn(seed, 7, make_config).is_err())
}

#[test]
fn missing_refutation_is_detected() {
    assert!(detects(cannot_refute));
}

#[test]
fn death_without_suspicion_is_detected() {
    assert!(detects(without_suspicion));
}

/// Two nodes that are partitioned from each other, and others that reach both.
fn suspicions_in_a_partition(make_config: super::network::MakeConfig) -> usize {
    let mut network = TestNetwork::new(7, NO_FAULTS, make_config);
    (1..=5).for_each(|number| network.start(number));
    network.run(SETTLED);
    network.net.partition(1, 2);
    network.run(Duration::from_secs(10));
    network.assert_converged("partitioned");
    network.events.len()
}

fn without_indirect_probes(number: u8, born: u64) -> NodeConfig {
    NodeConfig {
        timing: ProbeTiming { helpers: 0, ..ProbeTiming::default() },
        ..default_config(number, born)
    }
}

#[test]
fn indirect_probes_prevent_suspicion_in_a_partition_of_two() {
    assert_eq!(suspicions_in_a_partition(default_config), 0);
    assert_ne!(suspicions_in_a_partition(without_indirect_probes), 0, "missing indirect probes are detected");
}

#[test]
fn tables_converge_after_a_partition_heals() {
    let mut network = TestNetwork::with(6, 3, NO_FAULTS);
    network.run(SETTLED);
    for low in 1..=3 {
        (4..=6).for_each(|high| network.net.partition(low, high));
    }
    network.run(Duration::from_secs(5));
    let reachable = |network: &TestNetwork| {
        let node = &network.nodes[&1];
        node.nodes().filter(|view| view.state.is_up()).count()
    };
    assert_eq!(reachable(&network), 3);
    network.net.heal();
    network.events.clear();
    network.run(SETTLED);
    network.assert_converged("joined again");
    let is_dead = |event: &&Event| matches!(event, Event::Dead { .. });
    assert_eq!(network.events.iter().filter(is_dead).count(), 0, "{:?}", network.events);
}

#[test]
fn rejoining_node_causes_no_deaths() {
    // From short partitions, of which updates are still in dissemination, to long ones, known from tables only.
    for seconds in [2, 5, 15] {
        for seed in seeds(2) {
            let mut network = TestNetwork::with(4, seed, LOSSY);
            network.run(SETTLED);
            (2..=4).for_each(|other| network.net.partition(1, other));
            network.run(Duration::from_secs(seconds));
            network.net.heal();
            network.events.clear();
            network.run(SETTLED);
            network.assert_converged("it is back");
            // Nodes that were never partitioned.
            let died = network
                .events
                .iter()
                .filter(|event| matches!(event, Event::Dead { by, of } if *by != 1 && *of != 1));
            assert_eq!(died.count(), 0, "after {seconds} s, seed {seed}: {:?}", network.events);
        }
    }
}

#[test]
fn stalled_machine_suspects_no_node() {
    let mut network = TestNetwork::with(5, 4, NO_FAULTS);
    network.run(SETTLED);
    network.stall(1, Duration::from_secs(20));
    network.run(Duration::from_secs(20));
    network.events.clear();
    network.run(SETTLED);
    let suspected = network
        .events
        .iter()
        .filter(|event| matches!(event, Event::Suspect { by: 1, .. } | Event::Dead { by: 1, .. }));
    assert_eq!(suspected.count(), 0, "{:?}", network.events);
    network.assert_converged("after it runs again");
}

#[test]
fn node_stalled_for_a_second_refutes_in_time() {
    let mut network = TestNetwork::with(5, 5, NO_FAULTS);
    network.run(SETTLED);
    network.stall(1, Duration::from_millis(1_000));
    network.run(Duration::from_secs(4));
    assert!(!network.events.iter().any(|event| matches!(event, Event::Dead { .. })), "{:?}", network.events);
    network.assert_converged("after it runs again");
}

/// Nodes on different segments that know the first one only, started one after the other.
fn through_a_peer(config: fn(u8, u64) -> NodeConfig, nodes: u8) -> TestNetwork {
    let mut network = TestNetwork::new(9, NO_FAULTS, config);
    network.has_segment = false;
    network.start(1);
    network.run(SETTLED);
    for number in 2..=nodes {
        network.start(number);
        network.run(Duration::from_millis(20));
    }
    network.run(SETTLED);
    network.assert_converged("all of them");
    network
}

#[test]
fn nodes_that_know_one_peer_discover_all() {
    fn routed(number: u8, born: u64) -> NodeConfig {
        NodeConfig { peers: vec![super::network::address(1)], ..default_config(number, born) }
    }
    through_a_peer(routed, 16);
}

#[test]
fn nodes_with_unreachable_first_addresses_are_discovered_through_a_peer() {
    fn routed(number: u8, born: u64) -> NodeConfig {
        let addresses = [250, 251, number].map(|last| super::network::address(last).ip()).to_vec();
        NodeConfig { peers: vec![super::network::address(1)], addresses, ..default_config(number, born) }
    }
    let mut network = through_a_peer(routed, 6);
    network.events.clear();
    network.run(Duration::from_secs(10));
    assert_eq!(network.events, [], "no node is suspected");
}
