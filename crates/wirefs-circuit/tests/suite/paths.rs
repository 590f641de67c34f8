//! Cards: how fast one is, two together, and what happens when one is slow, lossy or dead.

use std::time::Duration;

use wirefs_circuit::limits::SIZE_WAIT;
use wirefs_circuit::{Class, Output};
use wirefs_lab::{LaneProfile, Probability};

use crate::pair::{Pair, wire};
use crate::world::{World, us};

const MBIT_200: u64 = 200_000_000;
/// What one TCP connection carries of 200 Mbit/s at an MTU of 1500: 1448 of 1514 bytes, in bytes a second.
const TCP_BYTES: u64 = MBIT_200 / 8 * 1_448 / 1_514;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Bytes a second that a bulk circuit carries, after some time to get going.
fn rate(pair: &mut Pair) -> u64 {
    let circuit = pair.open(Class::Bulk);
    pair.pump(circuit, ms(300));
    let (bytes, _) = pair.pump(circuit, ms(500));
    pair.world.nodes[0].reset(circuit).unwrap();
    pair.pass(seconds(1));
    bytes * 2
}

fn set(world: &mut World, segment: u8, profile: &LaneProfile) {
    world.each_lane(|(_, at, _)| at == segment, |lane| lane.set_profile(profile.clone()));
}

#[test]
fn one_card_is_used_up_and_two_carry_twice_as_much() {
    let one = rate(&mut Pair::new(1, 1_500, &wire(MBIT_200)));
    assert!(one * 100 >= TCP_BYTES * 97, "{one} of {TCP_BYTES}");
    let two = rate(&mut Pair::new(2, 1_500, &wire(MBIT_200)));
    assert!(two * 100 >= TCP_BYTES * 195, "{two} of twice {TCP_BYTES}");
}

#[test]
fn slower_second_card_adds_what_it_has() {
    let mut pair = Pair::new(2, 1_500, &wire(MBIT_200));
    set(&mut pair.world, 1, &wire(MBIT_200 / 2));
    let both = rate(&mut pair);
    assert!(both * 100 >= TCP_BYTES * 140, "{both} of one and a half {TCP_BYTES}");
    // While it is in use it becomes slower still.
    set(&mut pair.world, 1, &wire(MBIT_200 / 10));
    let both = rate(&mut pair);
    assert!(both * 100 >= TCP_BYTES * 100, "{both} of {TCP_BYTES}");
}

#[test]
fn one_packet_lost_in_a_hundred_costs_less_than_a_tenth() {
    let lossy = LaneProfile { loss: Probability::percent(1), ..wire(MBIT_200) };
    let clean = rate(&mut Pair::new(2, 1_500, &wire(MBIT_200)));
    let lossy = rate(&mut Pair::new(2, 1_500, &lossy));
    assert!(lossy * 10 >= clean * 9, "{lossy} of {clean}");
}

#[test]
fn dead_card_is_cut_over_at_once_and_used_again_when_it_is_back() {
    let mut pair = Pair::new(2, 1_500, &wire(MBIT_200));
    let circuit = pair.open(Class::Bulk);
    pair.pump(circuit, ms(300));
    pair.world.each_lane(|(_, segment, _)| segment == 0, |lane| lane.cut());
    let (bytes, gap) = pair.pump(circuit, seconds(1));
    assert!(gap <= ms(200), "nothing came for {gap:?}");
    assert!(bytes * 100 >= TCP_BYTES * 80, "{bytes}");
    assert_eq!(pair.count(|output| matches!(output, Output::PathDown { .. })), 2, "each node tells");
    assert_eq!(pair.world.nodes[0].live_ways(pair.groups[0]).len(), 1);
    pair.world.each_lane(|_| true, |lane| lane.heal());
    pair.pump(circuit, seconds(2));
    assert_eq!(pair.world.nodes[0].live_ways(pair.groups[0]).len(), 2);
    let (bytes, _) = pair.pump(circuit, seconds(1));
    assert!(bytes * 100 >= TCP_BYTES * 180, "{bytes}");
}

#[test]
fn path_that_carries_one_way_only_is_no_trap() {
    let mut pair = Pair::new(2, 1_500, &wire(MBIT_200));
    let circuit = pair.open(Class::Bulk);
    pair.pump(circuit, ms(300));
    pair.world.each_lane(|(from, segment, _)| segment == 1 && from == 1, |lane| lane.cut());
    let (bytes, gap) = pair.pump(circuit, seconds(1));
    assert!(gap <= ms(200), "nothing came for {gap:?}");
    assert!(bytes * 100 >= TCP_BYTES * 80, "{bytes}");
}

#[test]
fn requests_stay_quick_beside_a_bulk_transfer() {
    let mut pair = Pair::new(2, 1_500, &wire(MBIT_200));
    let (bulk, request) = (pair.open(Class::Bulk), pair.open(Class::Request));
    pair.pump(bulk, ms(300));
    let far = pair.far(bulk);
    let mut worst = Duration::ZERO;
    for _ in 0..50 {
        let mut zeros = bytes::Bytes::from_static(&[0; 1 << 16]);
        pair.world.nodes[0].write(bulk, &mut zeros).unwrap();
        worst = worst.max(pair.echo(request, 100));
        while let wirefs_circuit::Read::Data(_) = pair.world.nodes[1].read(far) {}
    }
    // Two packets' way, and what is queued on the wire before them.
    assert!(worst < ms(8), "{worst:?}");
}

#[test]
fn circuits_are_at_home_on_one_card_after_the_other() {
    let mut pair = Pair::new(3, 1_500, &wire(MBIT_200));
    for _ in 0..6 {
        let circuit = pair.open(Class::Request);
        pair.echo(circuit, 100);
    }
    let sent: Vec<u64> =
        (0..3).map(|card| pair.world.lanes[&(0, card, 1)].counters().offered_frames).collect();
    assert!(sent.iter().all(|frames| *frames >= 3), "{sent:?}");
}

#[test]
fn larger_packets_are_used_where_they_pass() {
    for (card, segment, found) in [
        (1_500, 9_216, 1_500),
        (9_000, 9_216, 9_000),
        (9_000, 4_500, 4_000),
        (9_000, 1_500, 1_500),
        (600, 9_216, 600),
    ] {
        let mut world = World::new(2, 1, card, &wire(1_000_000_000), 7);
        world.segment_bytes = vec![segment];
        let mut pair = Pair::in_world(world);
        let circuit = pair.open(Class::Bulk);
        let (bytes, _) = pair.pump(circuit, ms(200));
        assert!(bytes > 10_000_000, "{card} {segment}: {bytes}");
        let sizes: Vec<usize> =
            pair.world.nodes[0].packet_bytes(pair.groups[0]).into_iter().map(|(_, bytes)| bytes).collect();
        assert_eq!(sizes, [found], "card {card}, segment {segment}");
        assert_eq!(pair.count(|output| matches!(output, Output::PathDown { .. })), 0);
    }
}

#[test]
fn segment_that_carries_less_than_before_does_not_stop_anything() {
    let mut world = World::new(2, 1, 9_000, &wire(1_000_000_000), 7);
    world.segment_bytes = vec![9_000];
    let mut pair = Pair::in_world(world);
    let circuit = pair.open(Class::Bulk);
    pair.pump(circuit, ms(200));
    pair.world.segment_bytes = vec![1_500];
    pair.pump(circuit, ms(300));
    let (bytes, _) = pair.pump(circuit, ms(200));
    assert!(bytes > 10_000_000, "{bytes}");
}

#[test]
fn distance_does_not_keep_a_card_from_being_used_up() {
    let far = LaneProfile { delay: ms(10), ..wire(MBIT_200) };
    let one = rate(&mut Pair::new(1, 1_500, &far));
    assert!(one * 100 >= TCP_BYTES * 90, "{one} of {TCP_BYTES}");
    let mut pair = Pair::new(1, 1_500, &wire(1_000_000_000));
    let circuit = pair.open(Class::Request);
    let took = (0..20).map(|_| pair.echo(circuit, 64)).max().unwrap();
    assert!(took < us(300), "{took:?}");
}

#[test]
fn path_that_carries_large_packets_no_more_goes_on_with_plain_ones() {
    // With one card the question whether it lives is lost in a large packet too; with two it travels alone, and is answered.
    for cards in [1, 2] {
        let mut pair = Pair::new(cards, 9_000, &wire(MBIT_200));
        let circuit = pair.open(Class::Bulk);
        pair.pump(circuit, seconds(1));
        let sizes = |pair: &mut Pair| pair.world.nodes[0].packet_bytes(pair.groups[0])[0].1;
        assert_eq!(sizes(&mut pair), 9_000);
        pair.world.segment_bytes[0] = 1_500;
        let (_, gap) = pair.pump(circuit, seconds(1));
        assert!(gap <= ms(300), "{gap:?}");
        assert_eq!(sizes(&mut pair), 1_500, "with {cards}");
        let (bytes, _) = pair.pump(circuit, seconds(1));
        assert!(bytes >= TCP_BYTES * u64::from(cards) * 9 / 10, "{bytes} over {cards}");
        pair.world.segment_bytes[0] = 9_000;
        pair.pass(SIZE_WAIT + seconds(1));
        assert_eq!(sizes(&mut pair), 9_000, "and back when they pass again");
    }
}
