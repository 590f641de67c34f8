//! Names.

use super::world::{FINE, Said, World, usual};
use crate::limits::SETTLING_ALONE;
use crate::{Config, Name};
use std::time::Duration;

/// All nodes want one name.
fn alike(number: u8, born: u64) -> Config {
    Config { name: Name::new("linus").unwrap(), ..usual(number, born) }
}

/// The same, and the clock of the second one is far behind.
fn alike_and_early(number: u8, born: u64) -> Config {
    Config { born: if number == 2 { 5 } else { born }, ..alike(number, born) }
}

fn holders(world: &World) -> Vec<Vec<String>> {
    let of = |node: &crate::Node| -> Vec<String> {
        let holders = node.nodes().filter(|view| view.holds_name && view.state.is_up());
        holders.map(|view| view.record.addresses[0].to_string()).collect()
    };
    world.nodes.values().map(of).collect()
}

#[test]
fn the_second_that_wants_a_name_is_told_and_the_first_keeps_it() {
    for maker in [alike, alike_and_early] {
        let mut world = World::new(1, FINE, maker);
        world.start(1);
        world.run(SETTLING_ALONE);
        world.start(2);
        world.run(Duration::from_secs(1));
        assert_eq!(world.said, [Said::NameTaken { by: 2 }]);
        assert_eq!(holders(&world), [["10.0.0.1"], ["10.0.0.1"]], "in both tables");
    }
}

#[test]
fn of_two_that_start_at_once_just_one_is_told() {
    for seed in 0..10 {
        let mut world = World::new(seed, FINE, alike);
        world.start(1);
        world.start(2);
        world.run(Duration::from_secs(3));
        let told = world.said.iter().filter(|said| matches!(said, Said::NameTaken { .. })).count();
        assert_eq!(told, 1, "seed {seed}: {:?}", world.said);
    }
}

#[test]
fn a_second_one_is_told_though_nobody_answered_it_for_a_while() {
    let mut world = World::new(1, FINE, alike);
    world.start(1);
    world.run(Duration::from_secs(3));
    world.cuts.insert((1, 2));
    world.start(2);
    world.run(Duration::from_secs(5));
    world.cuts.clear();
    world.run(Duration::from_secs(3));
    let told = world.said.iter().filter(|said| matches!(said, Said::NameTaken { .. }));
    assert_eq!(told.collect::<Vec<_>>(), [&Said::NameTaken { by: 2 }]);
    assert_eq!(holders(&world), [["10.0.0.1"], ["10.0.0.1"]]);
}

#[test]
fn a_second_one_is_told_though_its_machine_did_not_run_for_a_while() {
    let mut world = World::new(1, FINE, alike);
    world.start(1);
    world.run(Duration::from_secs(3));
    world.start(2);
    world.stall(2, SETTLING_ALONE * 2);
    world.run(SETTLING_ALONE * 3);
    let told = world.said.iter().filter(|said| matches!(said, Said::NameTaken { .. }));
    assert_eq!(told.collect::<Vec<_>>(), [&Said::NameTaken { by: 2 }]);
}

#[test]
fn a_name_is_free_again_when_its_holder_is_dead() {
    let mut world = World::new(1, FINE, alike);
    world.start(1);
    world.run(Duration::from_secs(3));
    world.kill(1);
    world.start(2);
    world.run(Duration::from_secs(3));
    assert_eq!(world.said, []);
    assert_eq!(holders(&world), [["10.0.0.2"]]);
}
