//! Groups and circuits from beginning to end: who may join, who is refused, what is left.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use wirefs_circuit::limits::{
    CIRCUITS_MAX, COOKIES_MAX, HALF_OPEN_MAX, HANDSHAKE_MAX, KEYS_MAX, REQUEST_CREDIT_MAX, SEND_BYTES_MAX,
    SILENCE_MAX,
};
use wirefs_circuit::{CardId, Class, DialFault, Lost, Misuse, Node, Output, Read, Trust, Way};
use wirefs_lab::random::Random;

use crate::pair::{Pair, START, joined, wire};
use crate::world::{World, address, config, handshake_key, node_key, us};

const GBIT: u64 = 1_000_000_000;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn world() -> World {
    World::new(2, 1, 1_500, &wire(GBIT), 1)
}

fn dial(world: &mut World, expected: Option<u8>) {
    let (now, ways) = (world.now, world.ways(1));
    world.nodes[0].dial(now, &ways, expected.map(node_key)).unwrap();
}

#[test]
fn both_sides_learn_who_the_other_is() {
    let pair = Pair::new(1, 1_500, &wire(GBIT));
    let peers: Vec<_> =
        pair.told.iter().filter(|(_, output)| matches!(output, Output::Joined { .. })).collect();
    let [near, far] = pair.groups;
    let expected = [
        (1, Output::Joined { group: far, peer: node_key(0), is_dialled: false }),
        (0, Output::Joined { group: near, peer: node_key(1), is_dialled: true }),
    ];
    assert!(expected.iter().all(|joined| peers.contains(&joined)), "{peers:?}");
}

#[test]
fn peer_with_another_key_than_expected_is_told_as_a_stranger() {
    let mut world = world();
    dial(&mut world, Some(9));
    world.pass(seconds(2));
    let stranger = |(_, output): &(u8, Output)| matches!(output, Output::Failed { why, .. } if *why == DialFault::Stranger(node_key(1)));
    assert!(world.outputs.iter().any(stranger), "{:?}", world.outputs);
    assert_eq!(joined(&world.outputs, 1), None);
}

#[test]
fn dialler_that_is_not_trusted_is_turned_away_and_hears_it() {
    let mut world = world();
    world.nodes[1].set_trust(Trust::Only(BTreeSet::from([node_key(5)])));
    dial(&mut world, Some(1));
    world.pass(seconds(2));
    assert!(world.outputs.iter().any(|(node, output)| {
        *node == 0 && matches!(output, Output::Lost { why: Lost::PeerClosed, .. })
    }));
    assert!(!world.outputs.iter().any(|(node, _)| *node == 1), "{:?}", world.outputs);
    assert_eq!(world.nodes[1].deadline(), None, "nothing of it is left");
}

#[test]
fn nobody_there_is_told_in_time() {
    let mut world = world();
    world.each_lane(|_| true, |lane| lane.cut());
    dial(&mut world, None);
    world.pass(HANDSHAKE_MAX + seconds(1));
    let failed: Vec<_> = world.outputs.iter().map(|(_, output)| output.clone()).collect();
    assert!(matches!(failed[..], [Output::Failed { why: DialFault::Silent, .. }]), "{failed:?}");
    assert_eq!(world.nodes[0].deadline(), None);
}

#[test]
fn peer_that_falls_silent_is_given_up_and_one_that_closes_at_once() {
    for closes in [true, false] {
        let mut pair = Pair::new(2, 1_500, &wire(GBIT));
        if closes {
            pair.world.nodes[0].close(pair.world.now, pair.groups[0]);
            pair.world.settle();
            pair.pass(seconds(1));
        } else {
            pair.world.each_lane(|_| true, |lane| lane.cut());
            pair.pass(SILENCE_MAX + seconds(2));
        }
        let mut lost: Vec<_> = pair
            .told
            .iter()
            .filter_map(|(node, output)| match output {
                Output::Lost { why, .. } => Some((*node, *why)),
                _ => None,
            })
            .collect();
        lost.sort_by_key(|(node, _)| *node);
        let expected = if closes {
            [(0, Lost::Closed), (1, Lost::PeerClosed)]
        } else {
            [(0, Lost::Silent), (1, Lost::Silent)]
        };
        assert_eq!(lost, expected);
        assert!(pair.world.nodes.iter().all(|node| node.deadline().is_none()), "nothing is left");
        assert_eq!(pair.world.nodes[0].open(pair.groups[0], Class::Bulk), Err(Misuse::Gone));
    }
}

#[test]
fn idle_group_says_little() {
    let mut pair = Pair::new(2, 1_500, &wire(GBIT));
    let before = pair.world.frames;
    pair.pass(seconds(60));
    let frames = pair.world.frames - before;
    assert!(frames <= 60 * 2 * 4, "{frames} in a minute, on two cards");
    let circuit = pair.open(Class::Request);
    assert!(pair.echo(circuit, 10) < us(500));
}

#[test]
fn flood_of_hellos_is_bounded_and_a_peer_comes_through() {
    let mut world = world();
    let mut random = Random::new(3);
    let mut flood = |world: &mut World, count: u64| {
        for _ in 0..count {
            let mut hello = vec![0; 160];
            hello.iter_mut().take(36).for_each(|byte| *byte = random.next_u64() as u8);
            hello[0] = 0x11;
            let now = world.now;
            let source = address(100 + random.below(100) as u8, 0);
            world.nodes[1].receive(now, CardId(0), source, &mut hello);
            // What it answers goes to nobody.
            let mut buffer = [0; 1_500];
            while world.nodes[1]
                .poll_packet(now, CardId(0), &mut buffer)
                .is_some_and(|to| to.destination != address(0, 0))
            {}
        }
    };
    (0..KEYS_MAX).for_each(|_| world.nodes[1].give_key(handshake_key()));
    flood(&mut world, 10_000);
    assert!(world.nodes[1].counters().cookies > 9_000);
    (0..KEYS_MAX).for_each(|_| world.nodes[1].give_key(handshake_key()));
    dial(&mut world, Some(1));
    for _ in 0..1_000 {
        let until = world.now + us(1_000);
        world.step(until);
        flood(&mut world, 5);
    }
    assert!(joined(&world.outputs, 0).is_some(), "{:?}", world.nodes[1].counters());
    assert!(joined(&world.outputs, 1).is_some());
    const { assert!(HALF_OPEN_MAX < 100) };
}

#[test]
fn recorded_handshake_makes_no_second_group() {
    let mut pair = Pair::new(1, 1_500, &wire(GBIT));
    let recorded: Vec<_> = pair.world.tap.iter().filter(|((from, ..), _)| *from == 0).cloned().collect();
    for _ in 0..3 {
        for (route, packet) in &recorded {
            pair.world.send(*route, packet);
            pair.pass(us(500));
        }
    }
    assert_eq!(pair.count(|output| matches!(output, Output::Joined { .. })), 2);
    assert!(pair.world.nodes[1].counters().replayed > 0);
    pair.pass(HANDSHAKE_MAX + seconds(1));
    let circuit = pair.open(Class::Request);
    pair.echo(circuit, 10);
}

#[test]
fn slow_reader_stops_its_writer_and_nobody_else() {
    let mut pair = Pair::new(1, 1_500, &wire(GBIT));
    let (slow, quick) = (pair.open(Class::Request), pair.open(Class::Request));
    let mut written = 0;
    for _ in 0..200 {
        let mut zeros = Bytes::from(vec![0; 1 << 16]);
        written += pair.world.nodes[0].write(slow, &mut zeros).unwrap();
        pair.pass(us(1_000));
    }
    assert!(written as u64 <= SEND_BYTES_MAX + REQUEST_CREDIT_MAX, "{written}");
    assert!(pair.world.nodes[1].held_bytes() <= REQUEST_CREDIT_MAX * 2);
    assert!(pair.echo(quick, 1_000) < us(2_000));
    let far = pair.far(slow);
    let mut read = 0;
    for _ in 0..2_000 {
        while let Read::Data(bytes) = pair.world.nodes[1].read(far) {
            read += bytes.len();
        }
        pair.pass(us(500));
    }
    assert_eq!(read, written);
    assert!(pair.count(|output| matches!(output, Output::Writable(circuit) if *circuit == slow)) >= 1);
}

#[test]
fn places_of_circuits_are_limited_and_used_again() {
    let mut pair = Pair::new(1, 1_500, &wire(GBIT));
    for _ in 0..3 {
        let circuits: Vec<_> = (0..CIRCUITS_MAX).map(|_| pair.open(Class::Request)).collect();
        assert_eq!(pair.world.nodes[0].open(pair.groups[0], Class::Bulk), Err(Misuse::Full));
        for (index, circuit) in circuits.iter().enumerate() {
            pair.world.nodes[0].write(*circuit, &mut "x".into()).unwrap();
            pair.world.nodes[0].finish(*circuit).unwrap();
            pair.world.settle();
            if index % 64 == 0 {
                pair.pass(us(500));
            }
        }
        pair.pass(seconds(1));
        for circuit in &circuits {
            let far = pair.far(*circuit);
            assert_eq!(pair.world.nodes[1].read(far), Read::Data("x".into()));
            assert_eq!(pair.world.nodes[1].read(far), Read::End);
            pair.world.nodes[1].finish(far).unwrap();
        }
        pair.world.settle();
        pair.pass(seconds(1));
        for circuit in &circuits {
            assert_eq!(pair.world.nodes[0].read(*circuit), Read::End);
            assert_eq!(pair.world.nodes[0].read(*circuit), Read::Gone);
        }
        pair.pass(seconds(1));
        let taken = [0, 1].map(|node| pair.world.nodes[node].circuits(pair.groups[node]));
        assert_eq!(taken, [0, 0]);
        assert!(pair.world.nodes.iter().all(|node| node.held_bytes() == 0));
    }
}

#[test]
fn reset_by_either_side_frees_the_place_on_both() {
    for by in [0, 1] {
        let mut pair = Pair::new(1, 1_500, &wire(GBIT));
        let circuit = pair.open(Class::Bulk);
        pair.echo(circuit, 5_000);
        let at = [circuit, pair.far(circuit)];
        pair.world.nodes[by].reset(at[by]).unwrap();
        assert_eq!(pair.world.nodes[by].read(at[by]), Read::Gone);
        pair.world.settle();
        pair.pass(seconds(1));
        let other = 1 - by;
        assert!(pair.told.contains(&(other as u8, Output::Reset(at[other]))));
        assert_eq!([0, 1].map(|node| pair.world.nodes[node].circuits(pair.groups[node])), [0, 0], "by {by}");
    }
}

#[test]
fn impossible_nodes_and_dials_are_refused() {
    assert_eq!(Node::new(config(0, 0, 1_500)).err(), Some(Misuse::Cards));
    assert_eq!(Node::new(config(0, 9, 1_500)).err(), Some(Misuse::Cards));
    assert_eq!(Node::new(config(0, 1, 500)).err(), Some(Misuse::Cards));
    let mut node = Node::new(config(0, 1, 1_500)).unwrap();
    let way = |card| Way { card: CardId(card), remote: address(1, 0) };
    assert_eq!(node.dial(START, &[], None), Err(Misuse::Ways));
    assert_eq!(node.dial(START, &[way(1)], None), Err(Misuse::Ways));
    assert_eq!(node.dial(START, &[way(0); 9], None), Err(Misuse::Ways));
    assert_eq!((0..1_000).filter(|_| node.dial(START, &[way(0)], None).is_ok()).count(), 256);
}

#[test]
fn node_that_restarts_is_joined_anew() {
    let mut pair = Pair::new(1, 1_500, &wire(GBIT));
    let mut again = Node::new(config(0, 1, 1_500)).unwrap();
    (0..4).for_each(|_| again.give_key(handshake_key()));
    pair.world.nodes[0] = again;
    pair.told.clear();
    dial(&mut pair.world, Some(1));
    pair.pass(SILENCE_MAX + seconds(2));
    assert_eq!(pair.count(|output| matches!(output, Output::Joined { .. })), 2);
    let is_old = |output: &Output| matches!(output, Output::Lost { group, why: Lost::Silent } if *group == pair.groups[1]);
    assert_eq!(pair.count(is_old), 1);
    pair.groups = [0, 1].map(|node| joined(&pair.told, node).unwrap());
    let circuit = pair.open(Class::Request);
    pair.echo(circuit, 10);
}

#[test]
fn cookies_that_nobody_asked_for_make_no_flood_of_hellos() {
    let mut world = world();
    world.each_lane(|_| true, |lane| lane.cut());
    dial(&mut world, Some(1));
    world.settle();
    let (_, hello) = world.tap.first().unwrap().clone();
    let before = world.frames;
    for number in 0..1_000u16 {
        let mut cookie = [&[0x21][..], &hello[1..4], &[7; 16]].concat();
        cookie[4..6].copy_from_slice(&number.to_le_bytes());
        // Half of them from where nobody was dialled.
        let source = address(1 + (number % 2) as u8, 0);
        let now = world.now;
        world.nodes[0].receive(now, CardId(0), source, &mut cookie);
        world.settle();
    }
    assert!(world.frames - before <= u64::from(COOKIES_MAX), "{}", world.frames - before);
    assert!(world.nodes[0].counters().forged >= 500);
}
