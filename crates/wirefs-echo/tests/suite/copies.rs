//! Copies shorten the wait of readers.

use std::time::Duration;

use wirefs_echo::{HostId, Redundancy};

use crate::simulation::{HostProfile, Simulation, ms};

const BLOCKS: u64 = 200;

/// Returns the average wait of a reader in cycles, over many blocks and start times.
fn mean_wait(copies: u8, jitter: u64) -> f64 {
    let profile = HostProfile::at(ms(100)).with(|path| path.jitter = ms(jitter));
    let mut sim =
        Simulation::answering(&[profile], 11, |config| config.redundancy = Redundancy::Copies(copies));
    (0..BLOCKS).for_each(|number| sim.store_block(number, 50));
    sim.run(ms(3_000));
    let mut waits = Vec::new();
    for round in 0..4 * BLOCKS {
        // Start times unrelated to the cycle and to the previous read.
        sim.run(Duration::from_micros(round * 7_919 % 100_003));
        waits.push(sim.read(round * 7 % BLOCKS).unwrap().1);
    }
    assert!(sim.lost.is_empty());
    let cycle = ms(100 + jitter / 2);
    waits.iter().sum::<Duration>().div_duration_f64(cycle) / waits.len() as f64
}

#[test]
fn reader_waits_half_a_cycle_divided_by_the_copies() {
    for jitter in [0, 6] {
        for copies in [1, 2, 4] {
            let (wait, expected) = (mean_wait(copies, jitter), 0.5 / f64::from(copies));
            assert!(
                (expected * 0.9..expected * 1.15).contains(&wait),
                "{copies} copies, jitter {jitter}: {wait}"
            );
        }
    }
}

#[test]
fn copies_are_kept_apart_with_few_contents_in_memory() {
    let profile = HostProfile::at(ms(100)).with(|path| path.jitter = ms(5));
    let mut sim = Simulation::answering(&[profile], 2, |config| config.redundancy = Redundancy::Copies(2));
    (0..1_000).for_each(|number| sim.store_block(number, 1_000));
    sim.run(ms(5_000));
    let before = sim.echo.counters();
    let mut held_bytes = 0;
    for _ in 0..1_000 {
        sim.run(ms(10));
        held_bytes += sim.echo.memory_bytes().send_queue;
    }
    let after = sim.echo.counters();
    let part = (after.held - before.held) as f64 / (after.circulated - before.circulated) as f64;
    assert!(part < 0.1, "{part} of the packets are held");
    let mean = held_bytes / 1_000;
    assert!(mean < 1_000 * 1_000 / 50, "{mean} bytes of a million are in memory on average");
}

#[test]
fn sync_point_is_reached_while_copies_are_held() {
    let profile = HostProfile::at(ms(100)).with(|path| path.jitter = ms(5));
    let mut sim = Simulation::answering(&[profile], 2, |config| config.redundancy = Redundancy::Copies(2));
    (0..1_000).for_each(|number| sim.store_block(number, 1_000));
    sim.run(ms(5_000));
    let end = sim.now + ms(5_000);
    sim.run_until(end, |sim| sim.echo.memory_bytes().send_queue > 0);
    assert!(sim.now < end, "no copy is held");
    assert!(sim.echo.is_sent_up_to(sim.echo.sync_point()), "no queued packet is new");
    for number in 2_000..2_010 {
        sim.store_block(number, 1_000);
        let point = sim.echo.sync_point();
        assert!(!sim.echo.is_sent_up_to(point));
        let end = sim.now + ms(200);
        sim.run_until(end, |sim| sim.echo.is_sent_up_to(point));
        assert!(sim.now < end, "a copy is sent within a cycle");
    }
}

/// Returns the cycle time of a near host with 2,000 packets, of which a driver takes `max` each `step`, and
/// how long a new block waits until both copies are sent.
fn wait_to_leave(step: Duration, max: usize) -> (Duration, Duration) {
    let mut profile = HostProfile::at(Duration::from_micros(100));
    profile.config.parked_packets = 8_192;
    let mut sim = Simulation::answering(&[profile], 3, |config| config.redundancy = Redundancy::Copies(2));
    (0..1_000).for_each(|number| sim.store_block(number, 50));
    sim.rest(ms(8_000), step, max);
    let cycle = sim.echo.status(HostId(0)).unwrap().cycle.unwrap();
    let begun = sim.now;
    sim.store_block(2_000, 50);
    let point = sim.echo.sync_point();
    sim.run_until(begun + ms(10_000), |sim| sim.echo.is_sent_up_to(point));
    assert!(sim.lost.is_empty());
    (cycle, sim.now - begun)
}

#[test]
fn block_stored_after_an_idle_period_is_sent_as_soon_as_without() {
    let (cycle, without) = wait_to_leave(ms(1), 20);
    assert!(cycle < ms(150), "{cycle:?}");
    let (cycle, rested) = wait_to_leave(ms(50), 50);
    assert!(cycle > ms(1_500), "{cycle:?}");
    assert!(rested <= without * 11 / 10, "{rested:?} after an idle period, {without:?} without");
}
