//! Blocks are stored, read and dropped.

use wirefs_echo::{Distance, EchoRefusal};
use wirefs_lab::Probability;

use crate::simulation::{HostProfile, Simulation, content, id, ms};

#[test]
fn stored_blocks_circulate_and_are_read_bit_for_bit() {
    let mut sim = Simulation::answering(&[HostProfile::at(ms(80))], 1, |_| {});
    for number in 0..500 {
        sim.store_block(number, number as usize * 2);
    }
    for _ in 0..3 {
        sim.run(ms(1_000));
        for number in (0..500).step_by(7) {
            let (block, took) = sim.read(number).unwrap();
            assert_eq!(block, content(number, number as usize * 2));
            assert!(took <= ms(81), "{took:?}");
        }
    }
    assert!(sim.lost.is_empty());
    assert_eq!(sim.echo.counters().refused, Default::default());
}

#[test]
fn block_that_was_never_stored_is_missing_at_once() {
    let mut sim = Simulation::answering(&[HostProfile::at(ms(80))], 1, |_| {});
    let before = sim.now;
    assert_eq!(sim.read(5), None);
    assert_eq!(sim.now, before);
}

#[test]
fn dropped_block_is_not_sent_again() {
    let mut sim = Simulation::answering(&[HostProfile::at(ms(80))], 1, |_| {});
    (0..100).for_each(|number| sim.store_block(number, 100));
    sim.run(ms(500));
    for number in 0..60 {
        sim.echo.drop_block(sim.now, id(number)).unwrap();
    }
    sim.run(ms(200));
    let before = sim.paths[0].sent;
    sim.run(ms(800));
    assert_eq!(sim.paths[0].sent - before, 40 * 10);
    assert_eq!(sim.echo.counters().refused.dropped, 60);
    assert_eq!(sim.read(59), None);
    assert!(sim.read(60).is_some());
    assert_eq!(sim.echo.capacity().packets, 40);
    assert!(sim.lost.is_empty(), "a dropped block is not lost");
}

#[test]
fn block_dropped_during_a_fetch_is_missing() {
    let mut sim = Simulation::answering(&[HostProfile::at(ms(80))], 1, |_| {});
    sim.store_block(1, 100);
    sim.run(ms(100));
    sim.echo.fetch(sim.now, id(1)).unwrap();
    sim.echo.drop_block(sim.now, id(1)).unwrap();
    sim.step();
    assert!(sim.missing.contains(&id(1)));
}

#[test]
fn used_id_and_oversized_block_are_refused() {
    let mut sim = Simulation::answering(&[HostProfile::at(ms(80))], 1, |_| {});
    sim.store_block(1, 100);
    assert_eq!(sim.echo.store_block(sim.now, id(1), content(2, 5), Distance::Any), Err(EchoRefusal::Exists));
    let bytes_max = sim.echo.block_bytes_max();
    assert_eq!(bytes_max, 1_472 - 56);
    sim.store_block(2, bytes_max);
    let large = content(3, bytes_max + 1);
    assert_eq!(
        sim.echo.store_block(sim.now, id(3), large, Distance::Any),
        Err(EchoRefusal::TooLarge { bytes_max })
    );
    sim.run(ms(200));
    assert_eq!(sim.read(2).unwrap().0, content(2, bytes_max));
}

#[test]
fn packets_survive_a_suspend_of_an_hour() {
    let mut sim = Simulation::answering(&[HostProfile::at(ms(80))], 1, |_| {});
    (0..100).for_each(|number| sim.store_block(number, 100));
    sim.run(ms(1_000));
    sim.now = sim.now + ms(3_600_000);
    sim.run(ms(2_000));
    assert_eq!(sim.check_all(0..100, 100), 100);
    assert!(sim.lost.is_empty());
    assert!(sim.echo.status(wirefs_echo::HostId(0)).unwrap().cycle.unwrap() < ms(700));
}

#[test]
fn jitter_duplication_and_reordering_lose_nothing() {
    let profile = HostProfile::at(ms(60)).with(|path| {
        path.jitter = ms(30);
        path.duplicate = Probability::percent(5);
        path.reorder = Probability::percent(5);
        path.reorder_delay = ms(20);
    });
    for seed in 0..5 {
        let mut sim = Simulation::answering(std::slice::from_ref(&profile), seed, |_| {});
        (0..300).for_each(|number| sim.store_block(number, 200));
        sim.run(ms(20_000));
        assert_eq!(sim.check_all(0..300, 200), 300, "seed {seed}");
        assert!(sim.lost.is_empty(), "seed {seed}");
        assert!(sim.echo.counters().refused.replayed > 1_000, "seed {seed}: duplicates are accepted once");
        assert!(sim.paths[0].lane.held_frames() <= 330, "seed {seed}: they do not multiply");
    }
}
