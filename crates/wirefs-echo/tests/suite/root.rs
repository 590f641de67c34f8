//! A store that remembers no block.

use wirefs_echo::{HostId, Keep, Redundancy, Refusal};
use wirefs_lab::Probability;

use crate::world::{Site, World, content, id, ms};

const ROOT: Keep = Keep::Root { window_packets: 1 << 14 };

fn root(site: Site, redundancy: Redundancy) -> World {
    World::answering(&[site], 4, |config| {
        config.keep = ROOT;
        config.redundancy = redundancy;
    })
}

#[test]
fn blocks_are_kept_read_and_dropped_without_remembering_them() {
    let mut world = root(Site::at(ms(80)), Redundancy::Copies(1));
    (0..200).for_each(|number| world.keep(number, 300));
    world.run(ms(1_000));
    for number in (0..200).step_by(9) {
        assert_eq!(world.read(number).unwrap().0, content(number, 300));
    }
    (0..100).for_each(|number| world.echo.drop_block(world.now, id(number)).unwrap());
    assert_eq!(world.echo.keep(world.now, id(5), content(5, 10), Default::default()), Err(Refusal::Exists));
    world.run(ms(500));
    let before = world.ways[0].sent;
    world.run(ms(800));
    assert_eq!(world.ways[0].sent - before, 100 * 10);
    assert_eq!(world.read(5), None);
    assert_eq!(world.read(105).unwrap().0, content(105, 300));
    assert_eq!(world.echo.capacity().packets, 100);
}

#[test]
fn coded_blocks_are_read_without_an_index() {
    let mut world = root(Site::at(ms(80)), Redundancy::Code { pieces: 3, extra: 2 });
    (0..50).for_each(|number| world.keep(number, 3_000));
    world.run(ms(1_000));
    for number in (0..50).step_by(7) {
        assert_eq!(world.read(number).unwrap().0, content(number, 3_000));
    }
    assert_eq!(world.echo.memory_bytes().gathered, 0);
}

#[test]
fn loss_is_counted_when_it_happens_and_shows_when_somebody_asks() {
    let site = Site::at(ms(80)).with(|way| way.loss = Probability::percent(1));
    let mut world = root(site, Redundancy::Copies(1));
    (0..300).for_each(|number| world.keep(number, 100));
    world.run(ms(2_000));
    world.ways[0].lane.set_profile(Site::at(ms(80)).way);
    world.run(ms(500));
    let missing = (0..300).filter(|&number| world.read(number).is_none()).count();
    assert!(missing > 20, "{missing}");
    assert_eq!(world.echo.status(HostId(0)).unwrap().lost as usize, missing);
    assert_eq!(world.echo.capacity().packets as usize, 300 - missing);
}

#[test]
fn doubling_and_reordering_do_not_multiply_packets() {
    let site = Site::at(ms(60)).with(|way| {
        way.jitter = ms(30);
        way.duplicate = Probability::percent(5);
        way.reorder = Probability::percent(5);
        way.reorder_delay = ms(200);
    });
    let mut world = root(site, Redundancy::Copies(1));
    (0..300).for_each(|number| world.keep(number, 200));
    world.run(ms(10_000));
    assert_eq!(world.check_all(0..300, 200), 300);
    assert!(world.ways[0].lane.held_frames() <= 330, "{}", world.ways[0].lane.held_frames());
}

#[test]
fn store_without_index_sleeps_for_an_hour_and_loses_nothing() {
    let mut world = root(Site::at(ms(80)), Redundancy::Copies(1));
    (0..100).for_each(|number| world.keep(number, 100));
    world.run(ms(1_000));
    world.echo.drop_block(world.now, id(99)).unwrap();
    world.now = world.now + ms(3_600_000);
    world.run(ms(2_000));
    assert_eq!(world.check_all(0..99, 100), 99);
    assert_eq!(world.read(99), None);
}
