//! The life cycle of groups and circuits.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use wirefs_circuit::limits::{
    CIRCUITS_MAX, COOKIES_MAX, HALF_OPEN_MAX, HANDSHAKE_MAX, IDLE_TIMEOUT, KEYS_MAX, REQUEST_CREDIT_MAX,
    SEND_BYTES_MAX,
};
use wirefs_circuit::{
    CardId, CircuitClass, CircuitMisuse, CircuitNode, CircuitOutput, CloseReason, DialFault, NetworkPath,
    PeerTrust, Read,
};
use wirefs_lab::random::Random;

use crate::network::{SimNetwork, address, config, handshake_key, node_key, us};
use crate::pair::{Pair, START, joined, wire};

const GBIT: u64 = 1_000_000_000;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn network() -> SimNetwork {
    SimNetwork::new(2, 1, 1_500, &wire(GBIT), 1)
}

fn dial(network: &mut SimNetwork, expected: Option<u8>) {
    let (now, network_paths) = (network.now, network.network_paths(1));
    network.nodes[0].dial(now, &network_paths, expected.map(node_key)).unwrap();
}

#[test]
fn both_sides_learn_the_key_of_the_peer() {
    let pair = Pair::new(1, 1_500, &wire(GBIT));
    let peers: Vec<_> = pair
        .outputs
        .iter()
        .filter(|(_, output)| matches!(output, CircuitOutput::Established { .. }))
        .collect();
    let [near, far] = pair.groups;
    let expected = [
        (1, CircuitOutput::Established { group: far, peer: node_key(0), is_initiator: false }),
        (0, CircuitOutput::Established { group: near, peer: node_key(1), is_initiator: true }),
    ];
    assert!(expected.iter().all(|joined| peers.contains(&joined)), "{peers:?}");
}

#[test]
fn unexpected_peer_key_fails_the_dial() {
    let mut network = network();
    dial(&mut network, Some(9));
    network.pass(seconds(2));
    let unexpected = |(_, output): &(u8, CircuitOutput)| matches!(output, CircuitOutput::Failed { reason, .. } if *reason == DialFault::UnexpectedKey(node_key(1)));
    assert!(network.outputs.iter().any(unexpected), "{:?}", network.outputs);
    assert_eq!(joined(&network.outputs, 1), None);
}

#[test]
fn untrusted_initiator_is_rejected_and_notified() {
    let mut network = network();
    network.nodes[1].set_trust(PeerTrust::Only(BTreeSet::from([node_key(5)])));
    dial(&mut network, Some(1));
    network.pass(seconds(2));
    assert!(network.outputs.iter().any(|(node, output)| {
        *node == 0 && matches!(output, CircuitOutput::Closed { reason: CloseReason::Peer, .. })
    }));
    assert!(!network.outputs.iter().any(|(node, _)| *node == 1), "{:?}", network.outputs);
    assert_eq!(network.nodes[1].deadline(), None, "no timer is left");
}

#[test]
fn dial_without_a_responder_times_out() {
    let mut network = network();
    network.each_lane(|_| true, |lane| lane.cut());
    dial(&mut network, None);
    network.pass(HANDSHAKE_MAX + seconds(1));
    let failed: Vec<_> = network.outputs.iter().map(|(_, output)| output.clone()).collect();
    assert!(matches!(failed[..], [CircuitOutput::Failed { reason: DialFault::Timeout, .. }]), "{failed:?}");
    assert_eq!(network.nodes[0].deadline(), None);
}

#[test]
fn silent_peer_times_out_and_closing_peer_is_reported_at_once() {
    for closes in [true, false] {
        let mut pair = Pair::new(2, 1_500, &wire(GBIT));
        if closes {
            pair.network.nodes[0].close(pair.network.now, pair.groups[0]);
            pair.network.settle();
            pair.pass(seconds(1));
        } else {
            pair.network.each_lane(|_| true, |lane| lane.cut());
            pair.pass(IDLE_TIMEOUT + seconds(2));
        }
        let mut lost: Vec<_> = pair
            .outputs
            .iter()
            .filter_map(|(node, output)| match output {
                CircuitOutput::Closed { reason, .. } => Some((*node, *reason)),
                _ => None,
            })
            .collect();
        lost.sort_by_key(|(node, _)| *node);
        let expected = if closes {
            [(0, CloseReason::Local), (1, CloseReason::Peer)]
        } else {
            [(0, CloseReason::IdleTimeout), (1, CloseReason::IdleTimeout)]
        };
        assert_eq!(lost, expected);
        assert!(pair.network.nodes.iter().all(|node| node.deadline().is_none()), "no timer is left");
        assert_eq!(pair.network.nodes[0].open(pair.groups[0], CircuitClass::Bulk), Err(CircuitMisuse::Gone));
    }
}

#[test]
fn idle_group_sends_few_packets() {
    let mut pair = Pair::new(2, 1_500, &wire(GBIT));
    let before = pair.network.frames;
    pair.pass(seconds(60));
    let frames = pair.network.frames - before;
    assert!(frames <= 60 * 2 * 4, "{frames} in a minute, on two cards");
    let circuit = pair.open(CircuitClass::Request);
    assert!(pair.echo(circuit, 10) < us(500));
}

#[test]
fn flood_of_hellos_is_bounded_and_a_peer_still_connects() {
    let mut network = network();
    let mut random = Random::new(3);
    let mut flood = |network: &mut SimNetwork, count: u64| {
        for _ in 0..count {
            let mut hello = vec![0; 160];
            hello.iter_mut().take(36).for_each(|byte| *byte = random.next_u64() as u8);
            hello[0] = 0x11;
            let now = network.now;
            let source = address(100 + random.below(100) as u8, 0);
            network.nodes[1].receive(now, CardId(0), source, &mut hello);
            // The replies go to spoofed addresses.
            let mut buffer = [0; 1_500];
            while network.nodes[1]
                .poll_packet(now, CardId(0), &mut buffer)
                .is_some_and(|to| to.destination != address(0, 0))
            {}
        }
    };
    (0..KEYS_MAX).for_each(|_| network.nodes[1].give_key(handshake_key()));
    flood(&mut network, 10_000);
    assert!(network.nodes[1].counters().cookies > 9_000);
    (0..KEYS_MAX).for_each(|_| network.nodes[1].give_key(handshake_key()));
    dial(&mut network, Some(1));
    for _ in 0..1_000 {
        let until = network.now + us(1_000);
        network.step(until);
        flood(&mut network, 5);
    }
    assert!(joined(&network.outputs, 0).is_some(), "{:?}", network.nodes[1].counters());
    assert!(joined(&network.outputs, 1).is_some());
    const { assert!(HALF_OPEN_MAX < 100) };
}

#[test]
fn replayed_handshake_creates_no_group() {
    let mut pair = Pair::new(1, 1_500, &wire(GBIT));
    let recorded: Vec<_> = pair.network.tap.iter().filter(|((from, ..), _)| *from == 0).cloned().collect();
    for _ in 0..3 {
        for (route, packet) in &recorded {
            pair.network.send(*route, packet);
            pair.pass(us(500));
        }
    }
    assert_eq!(pair.count(|output| matches!(output, CircuitOutput::Established { .. })), 2);
    assert!(pair.network.nodes[1].counters().replayed > 0);
    pair.pass(HANDSHAKE_MAX + seconds(1));
    let circuit = pair.open(CircuitClass::Request);
    pair.echo(circuit, 10);
}

#[test]
fn slow_reader_blocks_only_its_writer() {
    let mut pair = Pair::new(1, 1_500, &wire(GBIT));
    let (slow, quick) = (pair.open(CircuitClass::Request), pair.open(CircuitClass::Request));
    let mut written = 0;
    for _ in 0..200 {
        let mut zeros = Bytes::from(vec![0; 1 << 16]);
        written += pair.network.nodes[0].write(slow, &mut zeros).unwrap();
        pair.pass(us(1_000));
    }
    assert!(written as u64 <= SEND_BYTES_MAX + REQUEST_CREDIT_MAX, "{written}");
    assert!(pair.network.nodes[1].held_bytes() <= REQUEST_CREDIT_MAX * 2);
    assert!(pair.echo(quick, 1_000) < us(2_000));
    let far = pair.far(slow);
    let mut read = 0;
    for _ in 0..2_000 {
        while let Read::Data(bytes) = pair.network.nodes[1].read(far) {
            read += bytes.len();
        }
        pair.pass(us(500));
    }
    assert_eq!(read, written);
    assert!(pair.count(|output| matches!(output, CircuitOutput::Writable(circuit) if *circuit == slow)) >= 1);
}

#[test]
fn circuit_slots_are_limited_and_reused() {
    let mut pair = Pair::new(1, 1_500, &wire(GBIT));
    for _ in 0..3 {
        let circuits: Vec<_> = (0..CIRCUITS_MAX).map(|_| pair.open(CircuitClass::Request)).collect();
        assert_eq!(pair.network.nodes[0].open(pair.groups[0], CircuitClass::Bulk), Err(CircuitMisuse::Full));
        for (index, circuit) in circuits.iter().enumerate() {
            pair.network.nodes[0].write(*circuit, &mut "x".into()).unwrap();
            pair.network.nodes[0].finish(*circuit).unwrap();
            pair.network.settle();
            if index % 64 == 0 {
                pair.pass(us(500));
            }
        }
        pair.pass(seconds(1));
        for circuit in &circuits {
            let far = pair.far(*circuit);
            assert_eq!(pair.network.nodes[1].read(far), Read::Data("x".into()));
            assert_eq!(pair.network.nodes[1].read(far), Read::End);
            pair.network.nodes[1].finish(far).unwrap();
        }
        pair.network.settle();
        pair.pass(seconds(1));
        for circuit in &circuits {
            assert_eq!(pair.network.nodes[0].read(*circuit), Read::End);
            assert_eq!(pair.network.nodes[0].read(*circuit), Read::Gone);
        }
        pair.pass(seconds(1));
        let taken = [0, 1].map(|node| pair.network.nodes[node].circuits(pair.groups[node]));
        assert_eq!(taken, [0, 0]);
        assert!(pair.network.nodes.iter().all(|node| node.held_bytes() == 0));
    }
}

#[test]
fn reset_by_either_side_frees_the_slot_on_both() {
    for by in [0, 1] {
        let mut pair = Pair::new(1, 1_500, &wire(GBIT));
        let circuit = pair.open(CircuitClass::Bulk);
        pair.echo(circuit, 5_000);
        let at = [circuit, pair.far(circuit)];
        pair.network.nodes[by].reset(at[by]).unwrap();
        assert_eq!(pair.network.nodes[by].read(at[by]), Read::Gone);
        pair.network.settle();
        pair.pass(seconds(1));
        let other = 1 - by;
        assert!(pair.outputs.contains(&(other as u8, CircuitOutput::Reset(at[other]))));
        assert_eq!(
            [0, 1].map(|node| pair.network.nodes[node].circuits(pair.groups[node])),
            [0, 0],
            "by {by}"
        );
    }
}

#[test]
fn invalid_configurations_and_dials_are_rejected() {
    assert_eq!(CircuitNode::new(config(0, 0, 1_500)).err(), Some(CircuitMisuse::Cards));
    assert_eq!(CircuitNode::new(config(0, 9, 1_500)).err(), Some(CircuitMisuse::Cards));
    assert_eq!(CircuitNode::new(config(0, 1, 500)).err(), Some(CircuitMisuse::Cards));
    let mut node = CircuitNode::new(config(0, 1, 1_500)).unwrap();
    let network_path = |card| NetworkPath { card: CardId(card), remote: address(1, 0) };
    assert_eq!(node.dial(START, &[], None), Err(CircuitMisuse::Paths));
    assert_eq!(node.dial(START, &[network_path(1)], None), Err(CircuitMisuse::Paths));
    assert_eq!(node.dial(START, &[network_path(0); 9], None), Err(CircuitMisuse::Paths));
    assert_eq!((0..1_000).filter(|_| node.dial(START, &[network_path(0)], None).is_ok()).count(), 256);
}

#[test]
fn restarted_node_connects_again() {
    let mut pair = Pair::new(1, 1_500, &wire(GBIT));
    let mut again = CircuitNode::new(config(0, 1, 1_500)).unwrap();
    (0..4).for_each(|_| again.give_key(handshake_key()));
    pair.network.nodes[0] = again;
    pair.outputs.clear();
    dial(&mut pair.network, Some(1));
    pair.pass(IDLE_TIMEOUT + seconds(2));
    assert_eq!(pair.count(|output| matches!(output, CircuitOutput::Established { .. })), 2);
    let is_old = |output: &CircuitOutput| matches!(output, CircuitOutput::Closed { group, reason: CloseReason::IdleTimeout } if *group == pair.groups[1]);
    assert_eq!(pair.count(is_old), 1);
    pair.groups = [0, 1].map(|node| joined(&pair.outputs, node).unwrap());
    let circuit = pair.open(CircuitClass::Request);
    pair.echo(circuit, 10);
}

#[test]
fn unsolicited_cookies_cause_few_hellos() {
    let mut network = network();
    network.each_lane(|_| true, |lane| lane.cut());
    dial(&mut network, Some(1));
    network.settle();
    let (_, hello) = network.tap.first().unwrap().clone();
    let before = network.frames;
    for number in 0..1_000u16 {
        let mut cookie = [&[0x21][..], &hello[1..4], &[7; 16]].concat();
        cookie[4..6].copy_from_slice(&number.to_le_bytes());
        // Half of them come from an address that was not dialed.
        let source = address(1 + (number % 2) as u8, 0);
        let now = network.now;
        network.nodes[0].receive(now, CardId(0), source, &mut cookie);
        network.settle();
    }
    assert!(network.frames - before <= u64::from(COOKIES_MAX), "{}", network.frames - before);
    assert!(network.nodes[0].counters().forged >= 500);
}
