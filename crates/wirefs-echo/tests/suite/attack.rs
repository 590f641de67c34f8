//! Packets that somebody else made, changed, kept or sent again change nothing but a counter.

use wirefs_echo::{Cipher, HostId, Keep, Key, Origin, Redundancy, Refused};

use crate::world::{Site, World, content, id, ms};

const BLOCKS: u64 = 60;
const KEEPS: [Keep; 2] = [Keep::Index, Keep::Root { window_packets: 1 << 12 }];

/// A store with blocks, of whose packets somebody has those of several laps.
fn tapped(keep: Keep, tapped: bool) -> (World, Vec<Vec<u8>>) {
    let mut world = World::answering(&[Site::at(ms(50)), Site::at(ms(50))], 9, |config| {
        config.keep = keep;
        config.redundancy = Redundancy::Copies(2);
    });
    if tapped {
        world.ways.iter_mut().for_each(|way| way.tap = Some(Vec::new()));
    }
    (0..BLOCKS).for_each(|number| world.keep(number, 300));
    world.run(ms(500));
    let taken = world.ways.iter_mut().filter_map(|way| way.tap.take()).flatten().collect();
    (world, taken)
}

fn host_of(packet: &[u8]) -> usize {
    usize::from(packet[4])
}

/// Puts packets into the receive buffer of a host, and lets the store have them.
fn deliver(world: &mut World, packets: impl IntoIterator<Item = (usize, Vec<u8>)>) {
    for (host, packet) in packets {
        let now = world.now;
        world.ways[host].buffer.push_back((now, packet));
    }
    world.turn();
}

/// Checks that a world is as another that was not attacked, but for what it counted.
fn assert_unharmed(world: &mut World, refused: Refused) {
    let counted = world.echo.counters().refused;
    assert_eq!(counted, refused);
    world.run(ms(1_000));
    let (mut calm, _) = tapped(Keep::Index, false);
    calm.run(ms(1_000));
    let per_lap = |world: &mut World| {
        let before: u64 = world.ways.iter().map(|way| way.sent).sum();
        world.run(ms(1_000));
        world.ways.iter().map(|way| way.sent).sum::<u64>() - before
    };
    assert_eq!(per_lap(world), per_lap(&mut calm), "as many packets go round as without the attack");
    assert_eq!(world.check_all(0..BLOCKS, 300), BLOCKS as usize);
    assert!(world.lost.is_empty());
}

#[test]
fn forged_and_damaged_packets_change_nothing() {
    for keep in KEEPS {
        let (mut world, taken) = tapped(keep, true);
        let good = taken.last().unwrap();
        let mut refused = Refused::default();
        let mut bad = Vec::new();
        for length in 0..56 {
            bad.push(good[..length].to_vec());
            refused.too_short += 1;
        }
        for length in 56..good.len() {
            bad.push(good[..length].to_vec());
            refused.forged += 1;
        }
        for place in 0..good.len() {
            let mut packet = good.clone();
            packet[place] ^= 0x40;
            bad.push(packet);
            match place {
                0..4 => refused.foreign += 1,
                4 => refused.misplaced += 1,
                _ => refused.forged += 1,
            }
        }
        for number in 0..1_000 {
            let mut packet = content(number, 356).to_vec();
            packet[..4].copy_from_slice(&good[..4]);
            packet[4] = good[4];
            bad.push(packet);
            refused.forged += 1;
        }
        let host = host_of(good);
        deliver(&mut world, bad.into_iter().map(|packet| (host, packet)));
        assert_unharmed(&mut world, refused);
    }
}

#[test]
fn replayed_packets_of_all_laps_change_nothing() {
    for keep in KEEPS {
        let (mut world, taken) = tapped(keep, true);
        // Those of the last lap are still out; the network's own come after all, and count as replayed instead.
        world.run(ms(60));
        let replays =
            taken.iter().cycle().take(3 * taken.len()).map(|packet| (host_of(packet), packet.clone()));
        let replays: Vec<_> = replays.collect();
        let count = replays.len() as u64;
        deliver(&mut world, replays);
        assert_unharmed(&mut world, Refused { replayed: count, ..Refused::default() });
    }
}

#[test]
fn packet_that_comes_before_itself_is_taken_once() {
    for keep in KEEPS {
        let (mut world, taken) = tapped(keep, true);
        // Somebody is faster than the network with what is still out, and sends each twice.
        let early: Vec<_> =
            taken.iter().rev().take(100).flat_map(|packet| [packet.clone(), packet.clone()]).collect();
        deliver(&mut world, early.into_iter().map(|packet| (host_of(&packet), packet)));
        world.run(ms(200));
        assert_unharmed(&mut world, Refused { replayed: 200, ..Refused::default() });
    }
}

#[test]
fn packet_from_another_host_than_it_went_to_changes_nothing() {
    for keep in KEEPS {
        let (mut world, taken) = tapped(keep, true);
        let count = taken.len() as u64;
        deliver(&mut world, taken.into_iter().map(|packet| (1 - host_of(&packet), packet)));
        assert_unharmed(&mut world, Refused { misplaced: count, ..Refused::default() });
    }
}

#[test]
fn packets_of_an_earlier_run_and_of_another_store_change_nothing() {
    for keep in KEEPS {
        let (mut world, _) = tapped(keep, false);
        let sites = [Site::at(ms(50))];
        let mut count = 0;
        for (key, origin) in [(Key([7; 32]), Origin(5)), (Key([8; 32]), Origin(0x0102_0304))] {
            let mut other = World::answering(&sites, 1, |config| {
                config.key = key;
                config.origin = origin;
                config.cipher = Cipher::default();
            });
            other.ways[0].tap = Some(Vec::new());
            (0..10).for_each(|number| other.keep(number, 300));
            other.run(ms(200));
            let taken = other.ways[0].tap.take().unwrap();
            count = taken.len() as u64;
            deliver(&mut world, taken.into_iter().map(|packet| (0, packet)));
        }
        assert_unharmed(&mut world, Refused { foreign: count, forged: count, ..Refused::default() });
    }
}

#[test]
fn dropped_block_never_comes_back_however_late_its_packets_are() {
    for keep in KEEPS {
        let (mut world, taken) = tapped(keep, true);
        let held: Vec<_> = {
            // Somebody keeps what is under way, all of it.
            let mut held = Vec::new();
            for (host, way) in world.ways.iter_mut().enumerate() {
                while let Some(due) = way.lane.deadline() {
                    held.extend(way.lane.poll(due).map(|packet| (host, packet)));
                }
            }
            held
        };
        for number in 0..BLOCKS {
            world.echo.drop_block(world.now, id(number)).unwrap();
        }
        for wait in [10, 500, 5_000, 60_000, 600_000] {
            world.run(ms(wait));
            let sent = world.ways.iter().map(|way| way.lane.counters().offered_bytes).sum::<u64>();
            deliver(&mut world, held.clone());
            deliver(&mut world, taken.iter().map(|packet| (host_of(packet), packet.clone())));
            world.run(ms(1));
            let now_sent = world.ways.iter().map(|way| way.lane.counters().offered_bytes).sum::<u64>();
            assert!(now_sent - sent < 4_000, "after {wait} ms no more than a question to each host is sent");
            for number in 0..BLOCKS {
                assert_eq!(world.read(number), None);
            }
        }
        assert!(world.fetched.is_empty());
        assert_eq!(world.echo.status(HostId(0)).unwrap().packets, 0);
    }
}

#[test]
fn glance_shows_blocks_of_packets_that_are_out_and_changes_nothing() {
    let (mut world, taken) = tapped(Keep::Index, true);
    let before = (world.echo.counters(), world.echo.capacity());
    // Of what was heard on the way, all but the packets of the last lap are back already.
    let shown: Vec<_> = taken
        .iter()
        .filter_map(|packet| world.echo.glance(HostId(host_of(packet) as u8), &mut packet.clone()))
        .collect();
    assert!(!shown.is_empty() && shown.len() <= 2 * BLOCKS as usize, "{} packets", shown.len());
    for (shown_id, block) in &shown {
        let number = (0..BLOCKS).find(|number| id(*number) == *shown_id).expect("one of ours");
        assert_eq!(*block, content(number, 300));
    }
    for packet in &taken {
        let mut damaged = packet.clone();
        *damaged.last_mut().unwrap() ^= 1;
        assert_eq!(world.echo.glance(HostId(host_of(packet) as u8), &mut damaged), None);
        assert_eq!(world.echo.glance(HostId(63), &mut packet.clone()), None);
    }
    assert_eq!((world.echo.counters(), world.echo.capacity()), before);
    assert_unharmed(&mut world, Refused::default());
    (0..BLOCKS).for_each(|number| world.echo.drop_block(world.now, id(number)).unwrap());
    let is_shown =
        |packet: &Vec<u8>| world.echo.glance(HostId(host_of(packet) as u8), &mut packet.clone()).is_some();
    assert!(!taken.iter().any(is_shown), "a block that was dropped is none");
}
