//! Copies make readers wait less.

use std::time::Duration;

use wirefs_echo::{HostId, Redundancy};

use crate::world::{Site, World, ms};

const BLOCKS: u64 = 200;

/// The average time that a reader waits, in laps, over many blocks and moments.
fn mean_wait(copies: u8, jitter: u64) -> f64 {
    let site = Site::at(ms(100)).with(|way| way.jitter = ms(jitter));
    let mut world = World::answering(&[site], 11, |config| config.redundancy = Redundancy::Copies(copies));
    (0..BLOCKS).for_each(|number| world.keep(number, 50));
    world.run(ms(3_000));
    let mut waits = Vec::new();
    for round in 0..4 * BLOCKS {
        // Moments that have nothing to do with the lap, nor with the read before.
        world.run(Duration::from_micros(round * 7_919 % 100_003));
        waits.push(world.read(round * 7 % BLOCKS).unwrap().1);
    }
    assert!(world.lost.is_empty());
    let lap = ms(100 + jitter / 2);
    waits.iter().sum::<Duration>().div_duration_f64(lap) / waits.len() as f64
}

#[test]
fn reader_waits_half_a_lap_over_the_number_of_copies() {
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
fn copies_are_kept_apart_while_hardly_any_contents_are_in_memory() {
    let site = Site::at(ms(100)).with(|way| way.jitter = ms(5));
    let mut world = World::answering(&[site], 2, |config| config.redundancy = Redundancy::Copies(2));
    (0..1_000).for_each(|number| world.keep(number, 1_000));
    world.run(ms(5_000));
    let before = world.echo.counters();
    let mut held_bytes = 0;
    for _ in 0..1_000 {
        world.run(ms(10));
        held_bytes += world.echo.memory_bytes().outbox;
    }
    let after = world.echo.counters();
    let part = (after.held - before.held) as f64 / (after.circulated - before.circulated) as f64;
    assert!(part < 0.1, "{part} of the packets are held back");
    let mean = held_bytes / 1_000;
    assert!(mean < 1_000 * 1_000 / 50, "{mean} bytes of a million are in memory on average");
}

#[test]
fn what_was_kept_has_left_although_some_copies_are_always_held_back() {
    let site = Site::at(ms(100)).with(|way| way.jitter = ms(5));
    let mut world = World::answering(&[site], 2, |config| config.redundancy = Redundancy::Copies(2));
    (0..1_000).for_each(|number| world.keep(number, 1_000));
    world.run(ms(5_000));
    let end = world.now + ms(5_000);
    world.run_until(end, |world| world.echo.memory_bytes().outbox > 0);
    assert!(world.now < end, "no copy is held back");
    assert!(world.echo.has_left(world.echo.mark()), "nothing of what waits is new");
    for number in 2_000..2_010 {
        world.keep(number, 1_000);
        let mark = world.echo.mark();
        assert!(!world.echo.has_left(mark));
        let end = world.now + ms(200);
        world.run_until(end, |world| world.echo.has_left(mark));
        assert!(world.now < end, "a copy leaves within a lap");
    }
}

/// The lap of a near host with 2,000 packets, of which a driver takes so many each `step`, and how long a block that is kept then waits
/// until both its copies have left.
fn wait_to_leave(step: Duration, most: usize) -> (Duration, Duration) {
    let mut site = Site::at(Duration::from_micros(100));
    site.config.parked_packets = 8_192;
    let mut world = World::answering(&[site], 3, |config| config.redundancy = Redundancy::Copies(2));
    (0..1_000).for_each(|number| world.keep(number, 50));
    world.rest(ms(8_000), step, most);
    let lap = world.echo.status(HostId(0)).unwrap().lap.unwrap();
    let begun = world.now;
    world.keep(2_000, 50);
    let mark = world.echo.mark();
    world.run_until(begun + ms(10_000), |world| world.echo.has_left(mark));
    assert!(world.lost.is_empty());
    (lap, world.now - begun)
}

#[test]
fn block_that_is_kept_after_a_rest_leaves_as_soon_as_without() {
    let (lap, without) = wait_to_leave(ms(1), 20);
    assert!(lap < ms(150), "{lap:?}");
    let (lap, rested) = wait_to_leave(ms(50), 50);
    assert!(lap > ms(1_500), "{lap:?}");
    assert!(rested <= without * 11 / 10, "{rested:?} after a rest, {without:?} without");
}
