//! Blocks that pass while a reader waits.

use wirefs_echo::{Keep, Redundancy};

use crate::simulation::{HostProfile, Simulation, content, id, ms};

const BLOCKS: u64 = 50;
const BYTES: usize = 700;

fn filled(change: impl FnOnce(&mut wirefs_echo::EchoConfig)) -> Simulation {
    let mut sim = Simulation::answering(&[HostProfile::at(ms(40))], 5, change);
    (0..BLOCKS).for_each(|number| sim.store_block(number, BYTES));
    sim.run(ms(200));
    sim
}

#[test]
fn each_passing_block_is_reported_while_the_driver_overhears() {
    for keep in [Keep::Index, Keep::Root { window_packets: 1_000 }] {
        let mut sim = filled(|config| config.keep = keep);
        assert!(sim.passed.is_empty(), "overhearing is off");
        sim.echo.overhear(true);
        sim.run(ms(45));
        let mut passed_blocks: Vec<_> = std::mem::take(&mut sim.passed);
        passed_blocks.sort();
        passed_blocks.dedup();
        let all: Vec<_> = (0..BLOCKS).map(|number| (id(number), content(number, BYTES))).collect();
        assert_eq!(passed_blocks, all, "{keep:?}: all of them within a cycle");
        sim.echo.overhear(false);
        sim.run(ms(200));
        assert!(sim.passed.is_empty());
    }
}

#[test]
fn dropped_block_is_not_overheard_and_fetched_block_is_reported_once() {
    let mut sim = filled(|_| {});
    sim.echo.drop_block(sim.now, id(3)).unwrap();
    sim.echo.overhear(true);
    assert!(sim.read(7).is_some());
    let of = |sim: &Simulation, number| sim.passed.iter().filter(|(passed, _)| *passed == id(number)).count();
    assert_eq!(of(&sim, 7), 0, "it was fetched");
    sim.run(ms(45));
    assert_eq!((of(&sim, 3), of(&sim, 7)), (0, 1));
}

#[test]
fn coded_pieces_are_not_overheard() {
    let mut sim = filled(|config| config.redundancy = Redundancy::Code { pieces: 2, extra: 1 });
    sim.echo.overhear(true);
    sim.run(ms(100));
    assert!(sim.passed.is_empty());
    assert_eq!(sim.check_all(0..BLOCKS, BYTES) as u64, BLOCKS);
}
