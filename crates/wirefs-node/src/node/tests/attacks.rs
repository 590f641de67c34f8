//! What strangers and former packets can do: nothing but count.

use super::world::{FINE, World, address, signer, usual};
use crate::{Config, Counters, Input, Trust};
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
