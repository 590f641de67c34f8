//! Blocks are kept, read and dropped.

use wirefs_echo::{Distance, Refusal};
use wirefs_lab::Probability;

use crate::world::{Site, World, content, id, ms};

#[test]
fn kept_blocks_go_round_and_are_read_bit_for_bit() {
    let mut world = World::answering(&[Site::at(ms(80))], 1, |_| {});
    for number in 0..500 {
        world.keep(number, number as usize * 2);
    }
    for _ in 0..3 {
        world.run(ms(1_000));
        for number in (0..500).step_by(7) {
            let (block, took) = world.read(number).unwrap();
            assert_eq!(block, content(number, number as usize * 2));
            assert!(took <= ms(81), "{took:?}");
        }
    }
    assert!(world.lost.is_empty());
    assert_eq!(world.echo.counters().refused, Default::default());
}

#[test]
fn block_that_was_never_kept_is_missing_at_once() {
    let mut world = World::answering(&[Site::at(ms(80))], 1, |_| {});
    let before = world.now;
    assert_eq!(world.read(5), None);
    assert_eq!(world.now, before);
}

#[test]
fn dropped_block_is_not_sent_again() {
    let mut world = World::answering(&[Site::at(ms(80))], 1, |_| {});
    (0..100).for_each(|number| world.keep(number, 100));
    world.run(ms(500));
    for number in 0..60 {
        world.echo.drop_block(world.now, id(number)).unwrap();
    }
    world.run(ms(200));
    let before = world.ways[0].sent;
    world.run(ms(800));
    assert_eq!(world.ways[0].sent - before, 40 * 10);
    assert_eq!(world.echo.counters().refused.dropped, 60);
    assert_eq!(world.read(59), None);
    assert!(world.read(60).is_some());
    assert_eq!(world.echo.capacity().packets, 40);
    assert!(world.lost.is_empty(), "what was dropped is not lost");
}

#[test]
fn block_dropped_while_somebody_waits_is_missing() {
    let mut world = World::answering(&[Site::at(ms(80))], 1, |_| {});
    world.keep(1, 100);
    world.run(ms(100));
    world.echo.fetch(world.now, id(1)).unwrap();
    world.echo.drop_block(world.now, id(1)).unwrap();
    world.turn();
    assert!(world.missing.contains(&id(1)));
}

#[test]
fn id_that_is_in_use_and_block_that_is_too_large_are_refused() {
    let mut world = World::answering(&[Site::at(ms(80))], 1, |_| {});
    world.keep(1, 100);
    assert_eq!(world.echo.keep(world.now, id(1), content(2, 5), Distance::Any), Err(Refusal::Exists));
    let bytes_max = world.echo.block_bytes_max();
    assert_eq!(bytes_max, 1_472 - 56);
    world.keep(2, bytes_max);
    let large = content(3, bytes_max + 1);
    assert_eq!(world.echo.keep(world.now, id(3), large, Distance::Any), Err(Refusal::TooLarge { bytes_max }));
    world.run(ms(200));
    assert_eq!(world.read(2).unwrap().0, content(2, bytes_max));
}

#[test]
fn packets_stay_out_when_the_machine_sleeps_for_an_hour() {
    let mut world = World::answering(&[Site::at(ms(80))], 1, |_| {});
    (0..100).for_each(|number| world.keep(number, 100));
    world.run(ms(1_000));
    world.now = world.now + ms(3_600_000);
    world.run(ms(2_000));
    assert_eq!(world.check_all(0..100, 100), 100);
    assert!(world.lost.is_empty());
    assert!(world.echo.status(wirefs_echo::HostId(0)).unwrap().lap.unwrap() < ms(700));
}

#[test]
fn jitter_doubling_and_reordering_lose_nothing() {
    let site = Site::at(ms(60)).with(|way| {
        way.jitter = ms(30);
        way.duplicate = Probability::percent(5);
        way.reorder = Probability::percent(5);
        way.reorder_delay = ms(20);
    });
    for seed in 0..5 {
        let mut world = World::answering(std::slice::from_ref(&site), seed, |_| {});
        (0..300).for_each(|number| world.keep(number, 200));
        world.run(ms(20_000));
        assert_eq!(world.check_all(0..300, 200), 300, "seed {seed}");
        assert!(world.lost.is_empty(), "seed {seed}");
        assert!(
            world.echo.counters().refused.replayed > 1_000,
            "seed {seed}: doubled packets are taken once"
        );
        assert!(world.ways[0].lane.held_frames() <= 330, "seed {seed}: they do not multiply");
    }
}
