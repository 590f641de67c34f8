//! Co-located servers of the same tree.

use super::*;
use crate::sessions::Colocation;
use wirefs_op::message::version::SessionId;

fn among(colocated: Colocation) -> World {
    World::with(Sessions::leasing(BOOT, LeaseTerms::new(Watch::Filesystem)).beside(colocated))
}

#[test]
fn no_session_is_exclusive_beside_a_colocated_server() {
    let mut world = among(Colocation::Present);
    assert!(notices(&attach_at_once(&mut world, A, 1, ALL)).is_empty());
    let outputs = world.handle(ServerInput::Colocation(Colocation::None));
    assert!(matches!(notices(&outputs).as_slice(), [(A, _, true)]), "{outputs:?}");
}

#[test]
fn attach_waits_until_the_state_of_colocated_servers_is_known() {
    for after in [Colocation::Present, Colocation::None] {
        let mut world = among(Colocation::Unknown);
        let outputs = start_attach(&mut world, A, 1, ALL);
        assert!(
            outputs.contains(&ServerOutput::AwaitColocated(SessionId([1; 16])))
                && attaches(&outputs).is_empty()
        );
        assert!(world.sessions.is_backlogged(A));
        let outputs = world.handle(ServerInput::Colocation(after));
        assert_eq!(attaches(&outputs).len(), 1);
        let notices = notices(&accept(&mut world, &attaches(&outputs)));
        assert_eq!(notices.len(), usize::from(after == Colocation::None));
    }
}

#[test]
fn colocated_server_waits_for_the_exclusive_session() {
    let mut world = exclusive_session();
    let outputs = world.handle(ServerInput::Colocation(Colocation::Starting));
    let [(A, serial, false)] = notices(&outputs)[..] else { panic!("{outputs:?}") };
    assert!(!outputs.contains(&ServerOutput::ExclusiveEnded));
    let outputs = world.receive(A, NOTAG, recalled(serial));
    assert_eq!(outputs, [ServerOutput::ExclusiveEnded]);
    assert!(notices(&later(&mut world, Duration::from_secs(5))).is_empty(), "a colocated server is present");
    // A further server need not wait.
    assert_eq!(world.handle(ServerInput::Colocation(Colocation::Starting)), [ServerOutput::ExclusiveEnded]);
    let outputs = world.handle(ServerInput::Colocation(Colocation::None));
    assert!(matches!(notices(&outputs).as_slice(), [(A, _, true)]), "{outputs:?}");
}

#[test]
fn colocated_server_need_not_wait_without_an_exclusive_session() {
    let mut world = World::leasing();
    assert_eq!(world.handle(ServerInput::Colocation(Colocation::Starting)), [ServerOutput::ExclusiveEnded]);
    assert!(notices(&attach_at_once(&mut world, A, 1, ALL)).is_empty());
    let mut world = World::new();
    assert_eq!(world.handle(ServerInput::Colocation(Colocation::Starting)), [ServerOutput::ExclusiveEnded]);
}

#[test]
fn colocated_server_waits_a_bounded_time_for_a_silent_session() {
    let mut world = exclusive_session();
    world.handle(ServerInput::Colocation(Colocation::Starting));
    assert!(
        !later(&mut world, RECOVERY_PERIOD - Duration::from_millis(10))
            .contains(&ServerOutput::ExclusiveEnded)
    );
    assert!(later(&mut world, Duration::from_millis(10)).contains(&ServerOutput::ExclusiveEnded));
}

#[test]
fn colocated_server_and_attaching_session_wait_for_one_recall() {
    let (mut world, serial) = held_attach();
    assert!(
        notices(&world.handle(ServerInput::Colocation(Colocation::Starting))).is_empty(),
        "the recall was sent already"
    );
    let outputs = world.receive(A, NOTAG, recalled(serial));
    assert!(outputs.contains(&ServerOutput::ExclusiveEnded) && attaches(&outputs).len() == 1, "{outputs:?}");
}

#[test]
fn session_that_moved_to_a_colocated_server_does_not_wait_for_itself() {
    let mut world = exclusive_session();
    world.handle(ServerInput::Colocation(Colocation::Starting));
    assert!(world.handle(ServerInput::Moved(SessionId([2; 16]))).is_empty(), "another session");
    let outputs = world.handle(ServerInput::Moved(SessionId([1; 16])));
    assert_eq!(closed(&outputs, A), Some(CloseReason::Replaced));
    assert!(outputs.contains(&ServerOutput::ExclusiveEnded));
    assert_eq!(world.sessions.sessions(), 0, "it has ended here");
}
