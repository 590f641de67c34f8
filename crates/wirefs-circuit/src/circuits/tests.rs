use super::*;
use crate::limits::{CREDIT_FIRST, PIECES_MAX};
use crate::output::PeerFault;

fn theirs(slot: usize, generation: u16) -> Number {
    Number::new(Side::Dialled, Class::Request, slot, generation)
}

fn circuits() -> Circuits {
    Circuits::new(Side::Dialler)
}

#[test]
fn peer_that_breaks_the_rules_is_blamed() {
    let number = theirs(0, 0);
    let long = vec![0; CREDIT_FIRST as usize + 1];
    assert_eq!(circuits().data(number, 0, &long, false, 0), Err(PeerFault::Credit));
    let mut ended = circuits();
    ended.data(number, 0, b"ab", true, 0).unwrap();
    assert_eq!(ended.data(number, 2, b"c", false, 0), Err(PeerFault::End));
    let other_class = Number::new(Side::Dialled, Class::Bulk, 0, 0);
    assert_eq!(ended.data(other_class, 0, b"a", false, 0), Err(PeerFault::Number));
    assert_eq!(Circuits::check(theirs(CIRCUITS_MAX, 0)), Err(PeerFault::Number));
    assert_eq!(Circuits::check(Number(u32::MAX)), Err(PeerFault::Number));
}

#[test]
fn what_is_late_for_an_earlier_use_of_a_place_changes_nothing() {
    let mut circuits = circuits();
    circuits.data(theirs(3, 0), 0, b"", true, 0).unwrap();
    assert_eq!(circuits.read(theirs(3, 0)), Read::End);
    circuits.finish(theirs(3, 0)).unwrap();
    circuits.arrived(Content::Data { number: theirs(3, 0), offset: 0, bytes: 0, is_last: true });
    assert_eq!(circuits.taken(), 0, "it is over and free");
    circuits.events.clear();
    circuits.data(theirs(3, 0), 0, b"late", false, 0).unwrap();
    circuits.peer_reset(theirs(3, 0));
    circuits.data(theirs(3, 7), 0, b"from nowhere", false, 0).unwrap();
    assert_eq!((circuits.taken(), circuits.events.len()), (0, 0));
    circuits.data(theirs(3, 1), 0, b"new", false, 0).unwrap();
    assert_eq!(circuits.events, [Event::Opened(theirs(3, 1)), Event::Readable(theirs(3, 1))]);
}

#[test]
fn place_of_ours_is_used_again_when_the_peer_freed_it_and_not_before() {
    let mut circuits = circuits();
    let first = circuits.open(Class::Bulk, 0).unwrap();
    circuits.reset(first).unwrap();
    assert_eq!(circuits.open(Class::Bulk, 0).unwrap().slot(), 1);
    circuits.peer_free(Number::new(Side::Dialler, Class::Bulk, 0, 9));
    assert_eq!(circuits.open(Class::Bulk, 0).unwrap().slot(), 2);
    circuits.peer_free(first);
    let again = circuits.open(Class::Request, 0).unwrap();
    assert_eq!((again.slot(), again.generation()), (0, 1));
}

#[test]
fn peer_cannot_free_what_is_still_written() {
    let mut circuits = circuits();
    let number = circuits.open(Class::Bulk, 0).unwrap();
    circuits.write(number, &mut "abc".into()).unwrap();
    circuits.peer_free(number);
    assert_eq!(circuits.write(number, &mut "def".into()), Some(3));
    assert_eq!(circuits.taken(), 1);
}

#[test]
fn full_circuit_takes_what_is_next_only() {
    let mut circuits = circuits();
    for at in 0..PIECES_MAX as u64 {
        assert!(circuits.has_room(theirs(0, 0), at * 2 + 2));
        circuits.data(theirs(0, 0), at * 2 + 2, b"x", false, 0).unwrap();
    }
    assert!(!circuits.has_room(theirs(0, 0), 20_000));
    assert!(circuits.has_room(theirs(0, 0), 0));
    assert!(circuits.has_room(theirs(1, 0), 20_000), "others are not concerned");
}

#[test]
fn pool_is_given_back() {
    let mut circuits = circuits();
    for generation in 0..3 {
        let number = Number::new(Side::Dialled, Class::Bulk, 0, generation);
        circuits.data(number, 0, &vec![0; CREDIT_FIRST as usize], false, 0).unwrap();
        assert!(matches!(circuits.read(number), Read::Data(_)));
        assert_eq!(circuits.pool, CREDIT_POOL - CREDIT_FIRST);
        circuits.peer_reset(number);
        assert_eq!(circuits.pool, CREDIT_POOL);
    }
}
