//! Forged, modified, delayed and replayed packets change nothing but a counter.

use wirefs_echo::{Cipher, EchoKey, HostId, Keep, Origin, Redundancy, RefusedPackets};

use crate::simulation::{HostProfile, Simulation, content, id, ms};

const BLOCKS: u64 = 60;
const KEEPS: [Keep; 2] = [Keep::Index, Keep::Root { window_packets: 1 << 12 }];

/// A store with blocks, and the packets that an observer captured over several cycles.
fn tapped(keep: Keep, tapped: bool) -> (Simulation, Vec<Vec<u8>>) {
    let mut sim = Simulation::answering(&[HostProfile::at(ms(50)), HostProfile::at(ms(50))], 9, |config| {
        config.keep = keep;
        config.redundancy = Redundancy::Copies(2);
    });
    if tapped {
        sim.paths.iter_mut().for_each(|path| path.tap = Some(Vec::new()));
    }
    (0..BLOCKS).for_each(|number| sim.store_block(number, 300));
    sim.run(ms(500));
    let captured = sim.paths.iter_mut().filter_map(|path| path.tap.take()).flatten().collect();
    (sim, captured)
}

fn host_of(packet: &[u8]) -> usize {
    usize::from(packet[4])
}

/// Puts packets into the receive buffer of a host and polls the store.
fn deliver(sim: &mut Simulation, packets: impl IntoIterator<Item = (usize, Vec<u8>)>) {
    for (host, packet) in packets {
        let now = sim.now;
        sim.paths[host].buffer.push_back((now, packet));
    }
    sim.step();
}

/// Checks that the store behaves like one that was not attacked, except for its counters.
fn assert_unharmed(sim: &mut Simulation, refused: RefusedPackets) {
    let counted = sim.echo.counters().refused;
    assert_eq!(counted, refused);
    sim.run(ms(1_000));
    let (mut calm, _) = tapped(Keep::Index, false);
    calm.run(ms(1_000));
    let per_cycle = |sim: &mut Simulation| {
        let before: u64 = sim.paths.iter().map(|path| path.sent).sum();
        sim.run(ms(1_000));
        sim.paths.iter().map(|path| path.sent).sum::<u64>() - before
    };
    assert_eq!(per_cycle(sim), per_cycle(&mut calm), "as many packets circulate as without the attack");
    assert_eq!(sim.check_all(0..BLOCKS, 300), BLOCKS as usize);
    assert!(sim.lost.is_empty());
}

#[test]
fn forged_and_damaged_packets_change_nothing() {
    for keep in KEEPS {
        let (mut sim, captured) = tapped(keep, true);
        let good = captured.last().unwrap();
        let mut refused = RefusedPackets::default();
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
        deliver(&mut sim, bad.into_iter().map(|packet| (host, packet)));
        assert_unharmed(&mut sim, refused);
    }
}

#[test]
fn replayed_packets_of_all_cycles_change_nothing() {
    for keep in KEEPS {
        let (mut sim, captured) = tapped(keep, true);
        // The packets of the last cycle are still in flight. The network's own copies arrive later and count
        // as replayed instead.
        sim.run(ms(60));
        let replays =
            captured.iter().cycle().take(3 * captured.len()).map(|packet| (host_of(packet), packet.clone()));
        let replays: Vec<_> = replays.collect();
        let count = replays.len() as u64;
        deliver(&mut sim, replays);
        assert_unharmed(&mut sim, RefusedPackets { replayed: count, ..RefusedPackets::default() });
    }
}

#[test]
fn early_replay_is_accepted_once() {
    for keep in KEEPS {
        let (mut sim, captured) = tapped(keep, true);
        // The attacker delivers packets in flight before the network does, each twice.
        let early: Vec<_> =
            captured.iter().rev().take(100).flat_map(|packet| [packet.clone(), packet.clone()]).collect();
        deliver(&mut sim, early.into_iter().map(|packet| (host_of(&packet), packet)));
        sim.run(ms(200));
        assert_unharmed(&mut sim, RefusedPackets { replayed: 200, ..RefusedPackets::default() });
    }
}

#[test]
fn packet_from_another_host_changes_nothing() {
    for keep in KEEPS {
        let (mut sim, captured) = tapped(keep, true);
        let count = captured.len() as u64;
        deliver(&mut sim, captured.into_iter().map(|packet| (1 - host_of(&packet), packet)));
        assert_unharmed(&mut sim, RefusedPackets { misplaced: count, ..RefusedPackets::default() });
    }
}

#[test]
fn packets_of_an_earlier_run_and_of_another_store_change_nothing() {
    for keep in KEEPS {
        let (mut sim, _) = tapped(keep, false);
        let profiles = [HostProfile::at(ms(50))];
        let mut count = 0;
        for (key, origin) in [(EchoKey([7; 32]), Origin(5)), (EchoKey([8; 32]), Origin(0x0102_0304))] {
            let mut other = Simulation::answering(&profiles, 1, |config| {
                config.key = key;
                config.origin = origin;
                config.cipher = Cipher::default();
            });
            other.paths[0].tap = Some(Vec::new());
            (0..10).for_each(|number| other.store_block(number, 300));
            other.run(ms(200));
            let captured = other.paths[0].tap.take().unwrap();
            count = captured.len() as u64;
            deliver(&mut sim, captured.into_iter().map(|packet| (0, packet)));
        }
        assert_unharmed(
            &mut sim,
            RefusedPackets { foreign: count, forged: count, ..RefusedPackets::default() },
        );
    }
}

#[test]
fn dropped_block_never_comes_back_however_late_its_packets_are() {
    for keep in KEEPS {
        let (mut sim, captured) = tapped(keep, true);
        let held: Vec<_> = {
            // The attacker captures all packets in flight.
            let mut held = Vec::new();
            for (host, path) in sim.paths.iter_mut().enumerate() {
                while let Some(due) = path.lane.deadline() {
                    held.extend(path.lane.poll(due).map(|packet| (host, packet)));
                }
            }
            held
        };
        for number in 0..BLOCKS {
            sim.echo.drop_block(sim.now, id(number)).unwrap();
        }
        for wait in [10, 500, 5_000, 60_000, 600_000] {
            sim.run(ms(wait));
            let sent = sim.paths.iter().map(|path| path.lane.counters().offered_bytes).sum::<u64>();
            deliver(&mut sim, held.clone());
            deliver(&mut sim, captured.iter().map(|packet| (host_of(packet), packet.clone())));
            sim.run(ms(1));
            let now_sent = sim.paths.iter().map(|path| path.lane.counters().offered_bytes).sum::<u64>();
            assert!(now_sent - sent < 4_000, "after {wait} ms only probes are sent");
            for number in 0..BLOCKS {
                assert_eq!(sim.read(number), None);
            }
        }
        assert!(sim.fetched.is_empty());
        assert_eq!(sim.echo.status(HostId(0)).unwrap().packets, 0);
    }
}

#[test]
fn peek_shows_blocks_in_flight_and_changes_nothing() {
    let (mut sim, captured) = tapped(Keep::Index, true);
    let before = (sim.echo.counters(), sim.echo.capacity());
    // Of the captured packets, all but those of the last cycle have been received before.
    let shown: Vec<_> = captured
        .iter()
        .filter_map(|packet| sim.echo.peek(HostId(host_of(packet) as u8), &mut packet.clone()))
        .collect();
    assert!(!shown.is_empty() && shown.len() <= 2 * BLOCKS as usize, "{} packets", shown.len());
    for (shown_id, block) in &shown {
        let number = (0..BLOCKS).find(|number| id(*number) == *shown_id).expect("a stored block");
        assert_eq!(*block, content(number, 300));
    }
    for packet in &captured {
        let mut damaged = packet.clone();
        *damaged.last_mut().unwrap() ^= 1;
        assert_eq!(sim.echo.peek(HostId(host_of(packet) as u8), &mut damaged), None);
        assert_eq!(sim.echo.peek(HostId(63), &mut packet.clone()), None);
    }
    assert_eq!((sim.echo.counters(), sim.echo.capacity()), before);
    assert_unharmed(&mut sim, RefusedPackets::default());
    (0..BLOCKS).for_each(|number| sim.echo.drop_block(sim.now, id(number)).unwrap());
    let is_shown =
        |packet: &Vec<u8>| sim.echo.peek(HostId(host_of(packet) as u8), &mut packet.clone()).is_some();
    assert!(!captured.iter().any(is_shown), "a dropped block is not shown");
}
