//! What strangers and former packets can do: nothing but count.

use super::world::{FINE, Said, World, address, signer, usual};
use crate::packet::{About, Draft, PartOf};
use crate::record::tests::signed;
use crate::{Config, Counters, Input, Liveness, Trust};
use std::collections::BTreeSet;
use std::time::Duration;

fn counters(world: &World, number: u8) -> Counters {
    world.nodes[&number].counters()
}

#[test]
fn a_packet_counts_once_and_from_no_other_key() {
    let mut world = World::with(2, 1, FINE);
    world.recorded = Some(Vec::new());
    world.run(Duration::from_secs(3));
    let recorded = world.recorded.take().unwrap();
    // What is on its way arrives.
    world.run(Duration::from_millis(50));
    let from_two = recorded.into_iter().filter(|(from, _)| *from == 2);
    let packets: Vec<Vec<u8>> = from_two.map(|(_, packet)| packet).collect();
    let before = counters(&world, 1);
    for packet in &packets {
        world.drive(1, Input::Packet { from: address(66), bytes: packet });
    }
    let after = counters(&world, 1);
    assert_eq!(after.received, before.received);
    assert_eq!(after.replayed, before.replayed + packets.len() as u64);
    assert_eq!(world.nodes[&1].find(&signer(2).0).unwrap().heard_from, Some(address(2)));
    let mut forged = packets.last().unwrap().clone();
    // The number, to get past the window.
    forged[36] ^= 0x40;
    world.drive(1, Input::Packet { from: address(66), bytes: &forged });
    assert_eq!(counters(&world, 1).forged, after.forged + 1);
    for bytes in [&b""[..], b"WFN1", &[0; 1_200], &[0xff; 2_000]] {
        world.drive(1, Input::Packet { from: address(66), bytes });
    }
    assert_eq!(counters(&world, 1).malformed, after.malformed + 4);
    world.assert_right("after all that");
}

#[test]
fn packets_of_a_dead_node_do_not_bring_it_back() {
    let mut world = World::with(3, 1, FINE);
    world.recorded = Some(Vec::new());
    world.run(Duration::from_secs(3));
    world.kill(3);
    world.run(Duration::from_secs(3));
    world.assert_right("it is dead");
    for (_, packet) in world.recorded.take().unwrap() {
        for number in [1, 2] {
            world.drive(number, Input::Packet { from: address(3), bytes: &packet });
        }
    }
    world.run(Duration::from_millis(100));
    world.assert_right("it is still dead");
}

/// A packet of a node that says what it likes.
fn packet(sender: u8, number: u64, parts: &[PartOf<'_>]) -> Vec<u8> {
    let (key, signer) = signer(sender);
    let mut draft = Draft::new(key, number, About::Announce);
    assert!(parts.iter().all(|part| draft.put(part)), "they fit");
    draft.finish(&signer).unwrap()
}

#[test]
fn many_doubts_are_refuted_once_a_packet_and_all_are_told_once_in_a_while() {
    const OTHERS: u64 = 5;
    let mut world = World::with(6, 1, FINE);
    world.run(Duration::from_secs(3));
    let before = counters(&world, 1);
    let own = world.nodes[&1].nodes().next().unwrap().record.clone();
    let evil = signed(66, |_| {});
    for number in 0..50 {
        let claims = (0..10).map(|n| {
            // Each packet guesses those that come, too.
            PartOf::Claim(Liveness::Suspect, own.key, own.incarnation + number + n)
        });
        let parts: Vec<_> = [PartOf::Record(Liveness::Alive, &evil)].into_iter().chain(claims).collect();
        let bytes = packet(66, 1 + number, &parts);
        world.drive(1, Input::Packet { from: address(66), bytes: &bytes });
    }
    let after = counters(&world, 1);
    assert_eq!(after.received - before.received, 50);
    assert_eq!(after.refutations - before.refutations, 50, "one for each packet, not for each doubt");
    // To the segment twice, to each that is there, and the words to the new one.
    assert!(after.sent - before.sent <= 2 + OTHERS + 10, "{}", after.sent - before.sent);
    world.run(Duration::from_secs(2));
    assert!(!world.said.iter().any(|said| matches!(said, Said::Dead { of: 1, .. })), "{:?}", world.said);
    let known = world.nodes[&2].find(&own.key).unwrap().record.incarnation;
    assert_eq!(
        known,
        world.nodes[&1].nodes().next().unwrap().record.incarnation,
        "the last word is with all"
    );
}

#[test]
fn who_is_not_trusted_is_not_in_the_table_however_it_is_passed_on() {
    /// 1 and 2 know each other's keys; 3 trusts anyone, and nobody trusts it.
    fn careful(number: u8, born: u64) -> Config {
        let trust = match number {
            3 => Trust::Anyone,
            _ => Trust::Only(BTreeSet::from([signer(1).0, signer(2).0])),
        };
        Config { trust, ..usual(number, born) }
    }
    let mut world = World::new(1, FINE, careful);
    (1..=3).for_each(|number| world.start(number));
    world.run(Duration::from_secs(3));
    for number in [1, 2] {
        assert_eq!(world.nodes[&number].nodes().count(), 2);
        assert!(counters(&world, number).strangers > 0);
    }
}
