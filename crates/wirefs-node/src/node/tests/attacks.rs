//! Attacks by untrusted senders and replays: they only increment counters.

use super::network::{Event, NO_FAULTS, TestNetwork, address, default_config, signer};
use crate::packet::{Draft, Message, UpdateRef};
use crate::record::tests::signed;
use crate::{Liveness, NodeConfig, NodeCounters, NodeInput, NodeTrust};
use std::collections::BTreeSet;
use std::time::Duration;

fn counters(network: &TestNetwork, number: u8) -> NodeCounters {
    network.nodes[&number].counters()
}

#[test]
fn packet_is_accepted_once_and_only_with_its_key() {
    let mut network = TestNetwork::with(2, 1, NO_FAULTS);
    network.recorded = Some(Vec::new());
    network.run(Duration::from_secs(3));
    let recorded = network.recorded.take().unwrap();
    // Packets in flight arrive.
    network.run(Duration::from_millis(50));
    let from_two = recorded.into_iter().filter(|(from, _)| *from == 2);
    let packets: Vec<Vec<u8>> = from_two.map(|(_, packet)| packet).collect();
    let before = counters(&network, 1);
    for packet in &packets {
        network.step(1, NodeInput::Packet { from: address(66), bytes: packet });
    }
    let after = counters(&network, 1);
    assert_eq!(after.received, before.received);
    assert_eq!(after.replayed, before.replayed + packets.len() as u64);
    assert_eq!(network.nodes[&1].find(&signer(2).0).unwrap().last_source, Some(address(2)));
    let mut forged = packets.last().unwrap().clone();
    // The packet number, to get past the replay window.
    forged[36] ^= 0x40;
    network.step(1, NodeInput::Packet { from: address(66), bytes: &forged });
    assert_eq!(counters(&network, 1).forged, after.forged + 1);
    for bytes in [&b""[..], b"WFN1", &[0; 1_200], &[0xff; 2_000]] {
        network.step(1, NodeInput::Packet { from: address(66), bytes });
    }
    assert_eq!(counters(&network, 1).malformed, after.malformed + 4);
    network.assert_converged("after all that");
}

#[test]
fn replayed_packets_do_not_revive_a_dead_node() {
    let mut network = TestNetwork::with(3, 1, NO_FAULTS);
    network.recorded = Some(Vec::new());
    network.run(Duration::from_secs(3));
    network.kill(3);
    network.run(Duration::from_secs(3));
    network.assert_converged("it is dead");
    for (_, packet) in network.recorded.take().unwrap() {
        for number in [1, 2] {
            network.step(number, NodeInput::Packet { from: address(3), bytes: &packet });
        }
    }
    network.run(Duration::from_millis(100));
    network.assert_converged("it is still dead");
}

/// A packet with arbitrary updates.
fn packet(sender: u8, number: u64, updates: &[UpdateRef<'_>]) -> Vec<u8> {
    let (key, signer) = signer(sender);
    let mut draft = Draft::new(key, number, Message::Announce);
    assert!(updates.iter().all(|update| draft.put(update)), "they fit");
    draft.finish(&signer).unwrap()
}

#[test]
fn claims_are_refuted_once_per_packet_and_broadcasts_are_rate_limited() {
    const OTHERS: u64 = 5;
    let mut network = TestNetwork::with(6, 1, NO_FAULTS);
    network.run(Duration::from_secs(3));
    let before = counters(&network, 1);
    let own = network.nodes[&1].nodes().next().unwrap().record.clone();
    let evil = signed(66, |_| {});
    for number in 0..50 {
        let claims = (0..10).map(|n| {
            // Each packet also guesses the next incarnations.
            UpdateRef::Claim(Liveness::Suspect, own.key, own.incarnation + number + n)
        });
        let updates: Vec<_> = [UpdateRef::Record(Liveness::Alive, &evil)].into_iter().chain(claims).collect();
        let bytes = packet(66, 1 + number, &updates);
        network.step(1, NodeInput::Packet { from: address(66), bytes: &bytes });
    }
    let after = counters(&network, 1);
    assert_eq!(after.received - before.received, 50);
    assert_eq!(after.refutations - before.refutations, 50, "one for each packet, not for each claim");
    // Two to the segment, one to each node that is up, and notifications to the new one.
    assert!(after.sent - before.sent <= 2 + OTHERS + 10, "{}", after.sent - before.sent);
    network.run(Duration::from_secs(2));
    assert!(
        !network.events.iter().any(|event| matches!(event, Event::Dead { of: 1, .. })),
        "{:?}",
        network.events
    );
    let known = network.nodes[&2].find(&own.key).unwrap().record.incarnation;
    assert_eq!(
        known,
        network.nodes[&1].nodes().next().unwrap().record.incarnation,
        "all nodes have the last incarnation"
    );
}

#[test]
fn untrusted_node_is_not_in_the_table_even_if_relayed() {
    /// 1 and 2 trust each other's keys only; 3 trusts any key, and is not trusted.
    fn restricted(number: u8, born: u64) -> NodeConfig {
        let trust = match number {
            3 => NodeTrust::Anyone,
            _ => NodeTrust::Only(BTreeSet::from([signer(1).0, signer(2).0])),
        };
        NodeConfig { trust, ..default_config(number, born) }
    }
    let mut network = TestNetwork::new(1, NO_FAULTS, restricted);
    (1..=3).for_each(|number| network.start(number));
    network.run(Duration::from_secs(3));
    for number in [1, 2] {
        assert_eq!(network.nodes[&number].nodes().count(), 2);
        assert!(counters(&network, number).untrusted > 0);
    }
}
