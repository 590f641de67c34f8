//! What passes while somebody waits.

use wirefs_echo::{Keep, Redundancy};

use crate::world::{Site, World, content, id, ms};

const BLOCKS: u64 = 50;
const BYTES: usize = 700;

fn filled(change: impl FnOnce(&mut wirefs_echo::Config)) -> World {
    let mut world = World::answering(&[Site::at(ms(40))], 5, change);
    (0..BLOCKS).for_each(|number| world.keep(number, BYTES));
    world.run(ms(200));
    world
}

#[test]
fn each_block_that_passes_is_told_of_as_long_as_the_driver_overhears() {
    for keep in [Keep::Index, Keep::Root { window_packets: 1_000 }] {
        let mut world = filled(|config| config.keep = keep);
        assert!(world.passed.is_empty(), "nobody overhears yet");
        world.echo.overhear(true);
        world.run(ms(45));
        let mut heard: Vec<_> = std::mem::take(&mut world.passed);
        heard.sort();
        heard.dedup();
        let all: Vec<_> = (0..BLOCKS).map(|number| (id(number), content(number, BYTES))).collect();
        assert_eq!(heard, all, "{keep:?}: all of them, within a lap");
        world.echo.overhear(false);
        world.run(ms(200));
        assert!(world.passed.is_empty());
    }
}

#[test]
fn what_is_dropped_is_not_overheard_and_what_is_wanted_is_told_once() {
    let mut world = filled(|_| {});
    world.echo.drop_block(world.now, id(3)).unwrap();
    world.echo.overhear(true);
    assert!(world.read(7).is_some());
    let of = |world: &World, number| world.passed.iter().filter(|(passed, _)| *passed == id(number)).count();
    assert_eq!(of(&world, 7), 0, "it was fetched");
    world.run(ms(45));
    assert_eq!((of(&world, 3), of(&world, 7)), (0, 1));
}

#[test]
fn pieces_of_a_code_are_no_blocks() {
    let mut world = filled(|config| config.redundancy = Redundancy::Code { pieces: 2, extra: 1 });
    world.echo.overhear(true);
    world.run(ms(100));
    assert!(world.passed.is_empty());
    assert_eq!(world.check_all(0..BLOCKS, BYTES) as u64, BLOCKS);
}
