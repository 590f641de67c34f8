//! Lost packets are detected, repaired and reported.

use wirefs_echo::{HostId, Redundancy};
use wirefs_lab::Probability;

use crate::simulation::{HostProfile, Simulation, id, ms};

#[test]
fn lost_block_is_reported_within_two_cycles() {
    for jitter in [0, 10] {
        let profile = HostProfile::at(ms(100)).with(|path| path.jitter = ms(jitter));
        for seed in 0..20 {
            let mut sim = Simulation::answering(std::slice::from_ref(&profile), seed, |_| {});
            (0..50).for_each(|number| sim.store_block(number, 100));
            sim.run(ms(1_000 + 7 * seed));
            // One packet is lost in the network.
            sim.paths[0].tap = Some(Vec::new());
            sim.run(ms(1));
            let healthy = sim.paths[0].profile.path.clone();
            sim.paths[0]
                .lane
                .set_profile(wirefs_lab::LaneProfile { loss: Probability::ALWAYS, ..healthy.clone() });
            let cut = sim.now;
            sim.run_until(cut + ms(300), |sim| sim.paths[0].lane.counters().dropped_by_loss > 0);
            let sent = sim.now;
            let gone = sim.paths[0].lane.counters().dropped_by_loss;
            sim.paths[0].lane.set_profile(healthy);
            sim.run(ms(400));
            assert_eq!(sim.lost.len() as u64, gone, "jitter {jitter}, seed {seed}");
            for (id, &noticed) in &sim.lost {
                let took = noticed - sent;
                assert!(took <= ms(2 * (100 + jitter)), "{id}: {took:?}, jitter {jitter}, seed {seed}");
            }
            assert_eq!(sim.check_all(0..50, 100) as u64, 50 - gone);
        }
    }
}

#[test]
fn loss_of_the_only_block_is_detected() {
    let mut sim = Simulation::answering(&[HostProfile::at(ms(100))], 1, |_| {});
    sim.store_block(1, 100);
    sim.run(ms(1_020));
    let sent = sim.now;
    sim.paths[0].lane.cut();
    sim.paths[0].lane.heal();
    sim.run_until(sent + ms(1_000), |sim| !sim.lost.is_empty());
    assert_eq!(sim.lost.keys().copied().collect::<Vec<_>>(), [id(1)]);
    assert!(sim.now - sent <= ms(200), "{:?}", sim.now - sent);
    assert_eq!(sim.read(1), None);
}

#[test]
fn copies_and_code_survive_loss() {
    let profile = HostProfile::at(ms(100)).with(|path| path.loss = Probability::new(0.002).unwrap());
    let shapes = [
        (Redundancy::Copies(3), 60),
        (Redundancy::Code { pieces: 4, extra: 3 }, 60),
        (Redundancy::Code { pieces: 8, extra: 8 }, 60),
    ];
    for (redundancy, seconds) in shapes {
        let mut sim =
            Simulation::answering(std::slice::from_ref(&profile), 3, |config| config.redundancy = redundancy);
        (0..100).for_each(|number| sim.store_block(number, 400));
        sim.run(ms(seconds * 1_000));
        assert!(sim.lost.is_empty(), "{redundancy:?}: {:?}", sim.lost);
        assert_eq!(sim.check_all(0..100, 400), 100);
        let counters = sim.echo.counters();
        assert!(counters.rebuilt > 100, "{redundancy:?}: {counters:?}");
        // As many packets as before are in flight: the lost ones were replaced.
        let lanes = sim.echo.capacity().packets_per_block;
        let out = sim.paths[0].lane.held_frames() as u64;
        assert!(out + 20 >= 100 * lanes, "{redundancy:?}: {out}");
    }
}

#[test]
fn single_copies_are_lost_at_the_packet_loss_rate_and_reported() {
    let profile = HostProfile::at(ms(100)).with(|path| path.loss = Probability::percent(1));
    let mut sim = Simulation::answering(&[profile], 5, |_| {});
    (0..1_000).for_each(|number| sim.store_block(number, 50));
    sim.run(ms(5_000));
    // 0.99 to the 50th is 0.605; more were lost while others were being stored.
    let there = sim.check_all(0..1_000, 50);
    assert!((500..650).contains(&there), "{there}");
    assert_eq!(sim.lost.len(), 1_000 - there);
    assert_eq!(sim.echo.status(HostId(0)).unwrap().lost, sim.lost.len() as u64);
}

#[test]
fn two_copies_lose_blocks_at_the_square_of_the_packet_loss() {
    let profile = HostProfile::at(ms(100)).with(|path| path.loss = Probability::percent(1));
    let mut sim = Simulation::answering(&[profile], 7, |config| config.redundancy = Redundancy::Copies(2));
    (0..1_000).for_each(|number| sim.store_block(number, 50));
    let cycles = 300;
    sim.run(ms(cycles * 100));
    // After one copy is lost, the other must be lost in the same cycle, or in the next before it could be
    // copied.
    let expected = 1_000.0 * cycles as f64 * 0.01 * 0.01;
    let lost = sim.lost.len() as f64;
    assert!((expected * 0.6..expected * 3.2).contains(&lost), "{lost} of {expected}");
    assert_eq!(sim.check_all(0..1_000, 50), 1_000 - sim.lost.len());
}

#[test]
fn late_packet_recovers_its_lost_block() {
    let mut sim = Simulation::answering(&[HostProfile::at(ms(100))], 1, |_| {});
    (0..20).for_each(|number| sim.store_block(number, 100));
    sim.run(ms(1_050));
    // The network delays all packets for a second.
    let mut held = Vec::new();
    while let Some(due) = sim.paths[0].lane.deadline() {
        held.extend(sim.paths[0].lane.poll(due));
    }
    assert_eq!(held.len(), 20);
    sim.run(ms(1_000));
    assert_eq!(sim.lost.len(), 20);
    held.into_iter().for_each(|packet| sim.paths[0].lane.push(sim.now, packet));
    sim.run(ms(300));
    assert_eq!((sim.lost.len(), sim.recovered.len()), (0, 20));
    assert_eq!(sim.check_all(0..20, 100), 20);
    assert_eq!(sim.echo.counters().late, 20);
}
