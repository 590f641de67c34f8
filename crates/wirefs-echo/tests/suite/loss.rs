//! Packets are lost: noticed, repaired, reported.

use wirefs_echo::{HostId, Redundancy};
use wirefs_lab::Probability;

use crate::world::{Site, World, id, ms};

#[test]
fn lost_block_is_reported_with_its_id_within_two_laps() {
    for jitter in [0, 10] {
        let site = Site::at(ms(100)).with(|way| way.jitter = ms(jitter));
        for seed in 0..20 {
            let mut world = World::answering(std::slice::from_ref(&site), seed, |_| {});
            (0..50).for_each(|number| world.keep(number, 100));
            world.run(ms(1_000 + 7 * seed));
            // One packet vanishes on its way.
            world.ways[0].tap = Some(Vec::new());
            world.run(ms(1));
            let healthy = world.ways[0].site.way.clone();
            world.ways[0]
                .lane
                .set_profile(wirefs_lab::LaneProfile { loss: Probability::ALWAYS, ..healthy.clone() });
            let cut = world.now;
            world.run_until(cut + ms(300), |world| world.ways[0].lane.counters().dropped_by_loss > 0);
            let sent = world.now;
            let gone = world.ways[0].lane.counters().dropped_by_loss;
            world.ways[0].lane.set_profile(healthy);
            world.run(ms(400));
            assert_eq!(world.lost.len() as u64, gone, "jitter {jitter}, seed {seed}");
            for (id, &noticed) in &world.lost {
                let took = noticed - sent;
                assert!(took <= ms(2 * (100 + jitter)), "{id}: {took:?}, jitter {jitter}, seed {seed}");
            }
            assert_eq!(world.check_all(0..50, 100) as u64, 50 - gone);
        }
    }
}

#[test]
fn loss_of_the_only_block_is_noticed_too() {
    let mut world = World::answering(&[Site::at(ms(100))], 1, |_| {});
    world.keep(1, 100);
    world.run(ms(1_020));
    let sent = world.now;
    world.ways[0].lane.cut();
    world.ways[0].lane.heal();
    world.run_until(sent + ms(1_000), |world| !world.lost.is_empty());
    assert_eq!(world.lost.keys().copied().collect::<Vec<_>>(), [id(1)]);
    assert!(world.now - sent <= ms(200), "{:?}", world.now - sent);
    assert_eq!(world.read(1), None);
}

#[test]
fn copies_and_code_outlive_what_one_copy_does_not() {
    let site = Site::at(ms(100)).with(|way| way.loss = Probability::new(0.002).unwrap());
    let shapes = [
        (Redundancy::Copies(3), 60),
        (Redundancy::Code { pieces: 4, extra: 3 }, 60),
        (Redundancy::Code { pieces: 8, extra: 8 }, 60),
    ];
    for (redundancy, seconds) in shapes {
        let mut world =
            World::answering(std::slice::from_ref(&site), 3, |config| config.redundancy = redundancy);
        (0..100).for_each(|number| world.keep(number, 400));
        world.run(ms(seconds * 1_000));
        assert!(world.lost.is_empty(), "{redundancy:?}: {:?}", world.lost);
        assert_eq!(world.check_all(0..100, 400), 100);
        let counters = world.echo.counters();
        assert!(counters.rebuilt > 100, "{redundancy:?}: {counters:?}");
        // As many as ever are under way: what was lost was replaced.
        let lanes = world.echo.capacity().packets_per_block;
        let out = world.ways[0].lane.held_frames() as u64;
        assert!(out + 20 >= 100 * lanes, "{redundancy:?}: {out}");
    }
}

#[test]
fn single_copies_are_lost_at_the_rate_of_the_wire_and_each_is_reported() {
    let site = Site::at(ms(100)).with(|way| way.loss = Probability::percent(1));
    let mut world = World::answering(&[site], 5, |_| {});
    (0..1_000).for_each(|number| world.keep(number, 50));
    world.run(ms(5_000));
    // 0.99 to the 50th is 0.605; more were lost while others were being kept.
    let there = world.check_all(0..1_000, 50);
    assert!((500..650).contains(&there), "{there}");
    assert_eq!(world.lost.len(), 1_000 - there);
    assert_eq!(world.echo.status(HostId(0)).unwrap().lost, world.lost.len() as u64);
}

#[test]
fn two_copies_lose_blocks_at_the_square_of_the_loss_and_no_faster() {
    let site = Site::at(ms(100)).with(|way| way.loss = Probability::percent(1));
    let mut world = World::answering(&[site], 7, |config| config.redundancy = Redundancy::Copies(2));
    (0..1_000).for_each(|number| world.keep(number, 50));
    let laps = 300;
    world.run(ms(laps * 100));
    // Whichever copy is lost first, the other must be lost in the same lap, or in the next before it could be copied.
    let expected = 1_000.0 * laps as f64 * 0.01 * 0.01;
    let lost = world.lost.len() as f64;
    assert!((expected * 0.6..expected * 3.2).contains(&lost), "{lost} of {expected}");
    assert_eq!(world.check_all(0..1_000, 50), 1_000 - world.lost.len());
}

#[test]
fn packet_that_comes_after_its_block_was_lost_brings_it_back() {
    let mut world = World::answering(&[Site::at(ms(100))], 1, |_| {});
    (0..20).for_each(|number| world.keep(number, 100));
    world.run(ms(1_050));
    // Somebody holds all packets back for a second.
    let mut held = Vec::new();
    while let Some(due) = world.ways[0].lane.deadline() {
        held.extend(world.ways[0].lane.poll(due));
    }
    assert_eq!(held.len(), 20);
    world.run(ms(1_000));
    assert_eq!(world.lost.len(), 20);
    held.into_iter().for_each(|packet| world.ways[0].lane.push(world.now, packet));
    world.run(ms(300));
    assert_eq!((world.lost.len(), world.found.len()), (0, 20));
    assert_eq!(world.check_all(0..20, 100), 20);
    assert_eq!(world.echo.counters().late, 20);
}
