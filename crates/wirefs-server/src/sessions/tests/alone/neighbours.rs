//! Other servers of the same tree.

use super::*;
use crate::sessions::Neighbours;
use wirefs_op::message::version::SessionId;

fn among(neighbours: Neighbours) -> World {
    World::with(Sessions::leasing(BOOT, Terms::new(Watch::Filesystem)).among(neighbours))
}

#[test]
fn nobody_is_alone_beside_a_neighbour() {
    let mut world = among(Neighbours::There);
    assert!(told(&enter(&mut world, A, 1, ALL)).is_empty());
    let outputs = world.handle(Input::Neighbours(Neighbours::None));
    assert!(matches!(told(&outputs).as_slice(), [(A, _, true)]), "{outputs:?}");
}

#[test]
fn nobody_attaches_before_it_is_known_whether_a_neighbour_has_somebody_alone() {
    for after in [Neighbours::There, Neighbours::None] {
        let mut world = among(Neighbours::Unknown);
        let outputs = come(&mut world, A, 1, ALL);
        assert!(outputs.contains(&Output::Waits(SessionId([1; 16]))) && asked(&outputs).is_empty());
        assert!(world.sessions.is_behind(A));
        let outputs = world.handle(Input::Neighbours(after));
        assert_eq!(asked(&outputs).len(), 1);
        let told = told(&let_in(&mut world, &asked(&outputs)));
        assert_eq!(told.len(), usize::from(after == Neighbours::None));
    }
}

#[test]
fn neighbour_waits_until_the_lone_session_has_given_way() {
    let mut world = lone();
    let outputs = world.handle(Input::Neighbours(Neighbours::Coming));
    let [(A, serial, false)] = told(&outputs)[..] else { panic!("{outputs:?}") };
    assert!(!outputs.contains(&Output::GivesWay));
    let outputs = world.receive(A, NOTAG, recalled(serial));
    assert_eq!(outputs, [Output::GivesWay]);
    assert!(told(&later(&mut world, Duration::from_secs(5))).is_empty(), "it is there now");
    // Another one need not wait.
    assert_eq!(world.handle(Input::Neighbours(Neighbours::Coming)), [Output::GivesWay]);
    let outputs = world.handle(Input::Neighbours(Neighbours::None));
    assert!(matches!(told(&outputs).as_slice(), [(A, _, true)]), "{outputs:?}");
}

#[test]
fn neighbour_need_not_wait_where_nobody_is_alone() {
    let mut world = World::leasing();
    assert_eq!(world.handle(Input::Neighbours(Neighbours::Coming)), [Output::GivesWay]);
    assert!(told(&enter(&mut world, A, 1, ALL)).is_empty());
    let mut world = World::new();
    assert_eq!(world.handle(Input::Neighbours(Neighbours::Coming)), [Output::GivesWay]);
}

#[test]
fn neighbour_does_not_wait_for_a_silent_session_for_ever() {
    let mut world = lone();
    world.handle(Input::Neighbours(Neighbours::Coming));
    assert!(!later(&mut world, RECOVERY - Duration::from_millis(10)).contains(&Output::GivesWay));
    assert!(later(&mut world, Duration::from_millis(10)).contains(&Output::GivesWay));
}

#[test]
fn neighbour_and_who_comes_here_wait_for_the_same() {
    let (mut world, serial) = coming();
    assert!(told(&world.handle(Input::Neighbours(Neighbours::Coming))).is_empty(), "it was asked already");
    let outputs = world.receive(A, NOTAG, recalled(serial));
    assert!(outputs.contains(&Output::GivesWay) && asked(&outputs).len() == 1, "{outputs:?}");
}

#[test]
fn session_that_has_gone_to_a_neighbour_does_not_wait_for_itself() {
    let mut world = lone();
    world.handle(Input::Neighbours(Neighbours::Coming));
    assert!(world.handle(Input::Moved(SessionId([2; 16]))).is_empty(), "that is another one");
    let outputs = world.handle(Input::Moved(SessionId([1; 16])));
    assert_eq!(closed(&outputs, A), Some(Parting::Replaced));
    assert!(outputs.contains(&Output::GivesWay));
    assert_eq!(world.sessions.sessions(), 0, "it has ended here");
}
