//! Name conflicts.

use super::network::{Event, NO_FAULTS, TestNetwork, default_config};
use crate::limits::SETTLING_WITHOUT_PEERS;
use crate::{NodeConfig, NodeName};
use std::time::Duration;

/// All nodes claim one name.
fn same_name(number: u8, born: u64) -> NodeConfig {
    NodeConfig { name: NodeName::new("linus").unwrap(), ..default_config(number, born) }
}

/// The same, with the clock of the second node far behind.
fn same_name_earlier_clock(number: u8, born: u64) -> NodeConfig {
    NodeConfig { born: if number == 2 { 5 } else { born }, ..same_name(number, born) }
}

fn holders(network: &TestNetwork) -> Vec<Vec<String>> {
    let of = |node: &crate::Node| -> Vec<String> {
        let holders = node.nodes().filter(|view| view.holds_name && view.state.is_up());
        holders.map(|view| view.record.addresses[0].to_string()).collect()
    };
    network.nodes.values().map(of).collect()
}

#[test]
fn second_claimant_is_notified_and_first_keeps_the_name() {
    for make_config in [same_name, same_name_earlier_clock] {
        let mut network = TestNetwork::new(1, NO_FAULTS, make_config);
        network.start(1);
        network.run(SETTLING_WITHOUT_PEERS);
        network.start(2);
        network.run(Duration::from_secs(1));
        assert_eq!(network.events, [Event::NameTaken { by: 2 }]);
        assert_eq!(holders(&network), [["10.0.0.1"], ["10.0.0.1"]], "in both tables");
    }
}

#[test]
fn one_of_two_simultaneous_claimants_is_notified() {
    for seed in 0..10 {
        let mut network = TestNetwork::new(seed, NO_FAULTS, same_name);
        network.start(1);
        network.start(2);
        network.run(Duration::from_secs(3));
        let conflicts =
            network.events.iter().filter(|event| matches!(event, Event::NameTaken { .. })).count();
        assert_eq!(conflicts, 1, "seed {seed}: {:?}", network.events);
    }
}

#[test]
fn second_claimant_is_notified_after_a_partition() {
    let mut network = TestNetwork::new(1, NO_FAULTS, same_name);
    network.start(1);
    network.run(Duration::from_secs(3));
    network.net.partition(1, 2);
    network.start(2);
    network.run(Duration::from_secs(5));
    network.net.heal();
    network.run(Duration::from_secs(3));
    let conflicts = network.events.iter().filter(|event| matches!(event, Event::NameTaken { .. }));
    assert_eq!(conflicts.collect::<Vec<_>>(), [&Event::NameTaken { by: 2 }]);
    assert_eq!(holders(&network), [["10.0.0.1"], ["10.0.0.1"]]);
}

#[test]
fn second_claimant_is_notified_after_a_stall() {
    let mut network = TestNetwork::new(1, NO_FAULTS, same_name);
    network.start(1);
    network.run(Duration::from_secs(3));
    network.start(2);
    network.stall(2, SETTLING_WITHOUT_PEERS * 2);
    network.run(SETTLING_WITHOUT_PEERS * 3);
    let conflicts = network.events.iter().filter(|event| matches!(event, Event::NameTaken { .. }));
    assert_eq!(conflicts.collect::<Vec<_>>(), [&Event::NameTaken { by: 2 }]);
}

#[test]
fn name_is_free_when_its_holder_is_dead() {
    let mut network = TestNetwork::new(1, NO_FAULTS, same_name);
    network.start(1);
    network.run(Duration::from_secs(3));
    network.kill(1);
    network.start(2);
    network.run(Duration::from_secs(3));
    assert_eq!(network.events, []);
    assert_eq!(holders(&network), [["10.0.0.2"]]);
}
