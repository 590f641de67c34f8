//! Throughput with one and several cards, and slow, lossy or dead cards.

use std::time::Duration;

use wirefs_circuit::limits::MTU_RETRY_WAIT;
use wirefs_circuit::{CircuitClass, CircuitOutput};
use wirefs_lab::{LaneProfile, Probability};

use crate::network::{SimNetwork, us};
use crate::pair::{Pair, wire};

const MBIT_200: u64 = 200_000_000;
/// The payload of a TCP connection at 200 Mbit/s and an MTU of 1500 (1448 of 1514 bytes), in bytes per
/// second.
const TCP_BYTES: u64 = MBIT_200 / 8 * 1_448 / 1_514;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Returns the throughput of a bulk circuit after a ramp-up, in bytes per second.
fn rate(pair: &mut Pair) -> u64 {
    let circuit = pair.open(CircuitClass::Bulk);
    pair.pump(circuit, ms(300));
    let (bytes, _) = pair.pump(circuit, ms(500));
    pair.network.nodes[0].reset(circuit).unwrap();
    pair.pass(seconds(1));
    bytes * 2
}

fn set(network: &mut SimNetwork, segment: u8, profile: &LaneProfile) {
    network.each_lane(|(_, at, _)| at == segment, |lane| lane.set_profile(profile.clone()));
}

#[test]
fn one_card_is_saturated_and_two_double_the_throughput() {
    let one = rate(&mut Pair::new(1, 1_500, &wire(MBIT_200)));
    assert!(one * 100 >= TCP_BYTES * 97, "{one} of {TCP_BYTES}");
    let two = rate(&mut Pair::new(2, 1_500, &wire(MBIT_200)));
    assert!(two * 100 >= TCP_BYTES * 195, "{two} of twice {TCP_BYTES}");
}

#[test]
fn slower_second_card_adds_its_bandwidth() {
    let mut pair = Pair::new(2, 1_500, &wire(MBIT_200));
    set(&mut pair.network, 1, &wire(MBIT_200 / 2));
    let both = rate(&mut pair);
    assert!(both * 100 >= TCP_BYTES * 140, "{both} of one and a half {TCP_BYTES}");
    // The card becomes slower while in use.
    set(&mut pair.network, 1, &wire(MBIT_200 / 10));
    let both = rate(&mut pair);
    assert!(both * 100 >= TCP_BYTES * 100, "{both} of {TCP_BYTES}");
}

#[test]
fn one_percent_loss_costs_less_than_ten_percent() {
    let lossy = LaneProfile { loss: Probability::percent(1), ..wire(MBIT_200) };
    let clean = rate(&mut Pair::new(2, 1_500, &wire(MBIT_200)));
    let lossy = rate(&mut Pair::new(2, 1_500, &lossy));
    assert!(lossy * 10 >= clean * 9, "{lossy} of {clean}");
}

#[test]
fn failover_from_a_dead_card_is_immediate_and_the_card_is_reused() {
    let mut pair = Pair::new(2, 1_500, &wire(MBIT_200));
    let circuit = pair.open(CircuitClass::Bulk);
    pair.pump(circuit, ms(300));
    pair.network.each_lane(|(_, segment, _)| segment == 0, |lane| lane.cut());
    let (bytes, gap) = pair.pump(circuit, seconds(1));
    assert!(gap <= ms(200), "no data for {gap:?}");
    assert!(bytes * 100 >= TCP_BYTES * 80, "{bytes}");
    assert_eq!(
        pair.count(|output| matches!(output, CircuitOutput::PathDown { .. })),
        2,
        "each node reports it"
    );
    assert_eq!(pair.network.nodes[0].live_paths(pair.groups[0]).len(), 1);
    pair.network.each_lane(|_| true, |lane| lane.heal());
    pair.pump(circuit, seconds(2));
    assert_eq!(pair.network.nodes[0].live_paths(pair.groups[0]).len(), 2);
    let (bytes, _) = pair.pump(circuit, seconds(1));
    assert!(bytes * 100 >= TCP_BYTES * 180, "{bytes}");
}

#[test]
fn unidirectional_path_failure_is_detected() {
    let mut pair = Pair::new(2, 1_500, &wire(MBIT_200));
    let circuit = pair.open(CircuitClass::Bulk);
    pair.pump(circuit, ms(300));
    pair.network.each_lane(|(from, segment, _)| segment == 1 && from == 1, |lane| lane.cut());
    let (bytes, gap) = pair.pump(circuit, seconds(1));
    assert!(gap <= ms(200), "no data for {gap:?}");
    assert!(bytes * 100 >= TCP_BYTES * 80, "{bytes}");
}

#[test]
fn requests_keep_low_latency_during_a_bulk_transfer() {
    let mut pair = Pair::new(2, 1_500, &wire(MBIT_200));
    let (bulk, request) = (pair.open(CircuitClass::Bulk), pair.open(CircuitClass::Request));
    pair.pump(bulk, ms(300));
    let far = pair.far(bulk);
    let mut worst = Duration::ZERO;
    for _ in 0..50 {
        let mut zeros = bytes::Bytes::from_static(&[0; 1 << 16]);
        pair.network.nodes[0].write(bulk, &mut zeros).unwrap();
        worst = worst.max(pair.echo(request, 100));
        while let wirefs_circuit::Read::Data(_) = pair.network.nodes[1].read(far) {}
    }
    // The transmission of two packets, plus the queue on the wire.
    assert!(worst < ms(8), "{worst:?}");
}

#[test]
fn preferred_paths_are_assigned_round_robin() {
    let mut pair = Pair::new(3, 1_500, &wire(MBIT_200));
    for _ in 0..6 {
        let circuit = pair.open(CircuitClass::Request);
        pair.echo(circuit, 100);
    }
    let sent: Vec<u64> =
        (0..3).map(|card| pair.network.lanes[&(0, card, 1)].counters().offered_frames).collect();
    assert!(sent.iter().all(|frames| *frames >= 3), "{sent:?}");
}

#[test]
fn path_mtu_is_used() {
    for (card, segment, found) in [
        (1_500, 9_216, 1_500),
        (9_000, 9_216, 9_000),
        (9_000, 4_500, 4_000),
        (9_000, 1_500, 1_500),
        (600, 9_216, 600),
    ] {
        let mut network = SimNetwork::new(2, 1, card, &wire(1_000_000_000), 7);
        network.segment_bytes = vec![segment];
        let mut pair = Pair::in_network(network);
        let circuit = pair.open(CircuitClass::Bulk);
        let (bytes, _) = pair.pump(circuit, ms(200));
        assert!(bytes > 10_000_000, "{card} {segment}: {bytes}");
        let sizes: Vec<usize> =
            pair.network.nodes[0].packet_bytes(pair.groups[0]).into_iter().map(|(_, bytes)| bytes).collect();
        assert_eq!(sizes, [found], "card {card}, segment {segment}");
        assert_eq!(pair.count(|output| matches!(output, CircuitOutput::PathDown { .. })), 0);
    }
}

#[test]
fn reduced_segment_mtu_does_not_stop_traffic() {
    let mut network = SimNetwork::new(2, 1, 9_000, &wire(1_000_000_000), 7);
    network.segment_bytes = vec![9_000];
    let mut pair = Pair::in_network(network);
    let circuit = pair.open(CircuitClass::Bulk);
    pair.pump(circuit, ms(200));
    pair.network.segment_bytes = vec![1_500];
    pair.pump(circuit, ms(300));
    let (bytes, _) = pair.pump(circuit, ms(200));
    assert!(bytes > 10_000_000, "{bytes}");
}

#[test]
fn high_latency_does_not_prevent_saturation() {
    let far = LaneProfile { delay: ms(10), ..wire(MBIT_200) };
    let one = rate(&mut Pair::new(1, 1_500, &far));
    assert!(one * 100 >= TCP_BYTES * 90, "{one} of {TCP_BYTES}");
    let mut pair = Pair::new(1, 1_500, &wire(1_000_000_000));
    let circuit = pair.open(CircuitClass::Request);
    let took = (0..20).map(|_| pair.echo(circuit, 64)).max().unwrap();
    assert!(took < us(300), "{took:?}");
}

#[test]
fn path_falls_back_to_base_size_when_large_packets_are_lost() {
    // With one card, the ping is lost in a large packet, too. With two, it is a packet of its own and is
    // answered.
    for cards in [1, 2] {
        let mut pair = Pair::new(cards, 9_000, &wire(MBIT_200));
        let circuit = pair.open(CircuitClass::Bulk);
        pair.pump(circuit, seconds(1));
        let sizes = |pair: &mut Pair| pair.network.nodes[0].packet_bytes(pair.groups[0])[0].1;
        assert_eq!(sizes(&mut pair), 9_000);
        pair.network.segment_bytes[0] = 1_500;
        let (_, gap) = pair.pump(circuit, seconds(1));
        assert!(gap <= ms(300), "{gap:?}");
        assert_eq!(sizes(&mut pair), 1_500, "with {cards}");
        let (bytes, _) = pair.pump(circuit, seconds(1));
        assert!(bytes >= TCP_BYTES * u64::from(cards) * 9 / 10, "{bytes} over {cards}");
        pair.network.segment_bytes[0] = 9_000;
        pair.pass(MTU_RETRY_WAIT + seconds(1));
        assert_eq!(sizes(&mut pair), 9_000, "restored when large packets pass again");
    }
}
