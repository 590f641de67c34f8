//! A store without an index.

use wirefs_echo::{EchoRefusal, HostId, Keep, Redundancy};
use wirefs_lab::Probability;

use crate::simulation::{HostProfile, Simulation, content, id, ms};

const ROOT: Keep = Keep::Root { window_packets: 1 << 14 };

fn root(profile: HostProfile, redundancy: Redundancy) -> Simulation {
    Simulation::answering(&[profile], 4, |config| {
        config.keep = ROOT;
        config.redundancy = redundancy;
    })
}

#[test]
fn blocks_are_stored_read_and_dropped_without_an_index() {
    let mut sim = root(HostProfile::at(ms(80)), Redundancy::Copies(1));
    (0..200).for_each(|number| sim.store_block(number, 300));
    sim.run(ms(1_000));
    for number in (0..200).step_by(9) {
        assert_eq!(sim.read(number).unwrap().0, content(number, 300));
    }
    (0..100).for_each(|number| sim.echo.drop_block(sim.now, id(number)).unwrap());
    assert_eq!(
        sim.echo.store_block(sim.now, id(5), content(5, 10), Default::default()),
        Err(EchoRefusal::Exists)
    );
    sim.run(ms(500));
    let before = sim.paths[0].sent;
    sim.run(ms(800));
    assert_eq!(sim.paths[0].sent - before, 100 * 10);
    assert_eq!(sim.read(5), None);
    assert_eq!(sim.read(105).unwrap().0, content(105, 300));
    assert_eq!(sim.echo.capacity().packets, 100);
}

#[test]
fn coded_blocks_are_read_without_an_index() {
    let mut sim = root(HostProfile::at(ms(80)), Redundancy::Code { pieces: 3, extra: 2 });
    (0..50).for_each(|number| sim.store_block(number, 3_000));
    sim.run(ms(1_000));
    for number in (0..50).step_by(7) {
        assert_eq!(sim.read(number).unwrap().0, content(number, 3_000));
    }
    assert_eq!(sim.echo.memory_bytes().collected, 0);
}

#[test]
fn loss_is_counted_at_once_and_found_by_a_fetch() {
    let profile = HostProfile::at(ms(80)).with(|path| path.loss = Probability::percent(1));
    let mut sim = root(profile, Redundancy::Copies(1));
    (0..300).for_each(|number| sim.store_block(number, 100));
    sim.run(ms(2_000));
    sim.paths[0].lane.set_profile(HostProfile::at(ms(80)).path);
    sim.run(ms(500));
    let missing = (0..300).filter(|&number| sim.read(number).is_none()).count();
    assert!(missing > 20, "{missing}");
    assert_eq!(sim.echo.status(HostId(0)).unwrap().lost as usize, missing);
    assert_eq!(sim.echo.capacity().packets as usize, 300 - missing);
}

#[test]
fn duplication_and_reordering_do_not_multiply_packets() {
    let profile = HostProfile::at(ms(60)).with(|path| {
        path.jitter = ms(30);
        path.duplicate = Probability::percent(5);
        path.reorder = Probability::percent(5);
        path.reorder_delay = ms(200);
    });
    let mut sim = root(profile, Redundancy::Copies(1));
    (0..300).for_each(|number| sim.store_block(number, 200));
    sim.run(ms(10_000));
    assert_eq!(sim.check_all(0..300, 200), 300);
    assert!(sim.paths[0].lane.held_frames() <= 330, "{}", sim.paths[0].lane.held_frames());
}

#[test]
fn store_without_index_survives_a_suspend_of_an_hour() {
    let mut sim = root(HostProfile::at(ms(80)), Redundancy::Copies(1));
    (0..100).for_each(|number| sim.store_block(number, 100));
    sim.run(ms(1_000));
    sim.echo.drop_block(sim.now, id(99)).unwrap();
    sim.now = sim.now + ms(3_600_000);
    sim.run(ms(2_000));
    assert_eq!(sim.check_all(0..99, 100), 99);
    assert_eq!(sim.read(99), None);
}
