use super::*;
use crate::limits::{INITIAL_CREDIT, OUT_OF_ORDER_MAX};
use crate::output::CircuitFault;

fn theirs(slot: usize, generation: u16) -> CircuitNumber {
    CircuitNumber::new(Side::Responder, CircuitClass::Request, slot, generation)
}

fn circuits() -> Circuits {
    Circuits::new(Side::Initiator)
}

#[test]
fn protocol_violations_are_peer_faults() {
    let number = theirs(0, 0);
    let long = vec![0; INITIAL_CREDIT as usize + 1];
    assert_eq!(circuits().data(number, 0, &long, false, 0), Err(CircuitFault::FlowControl));
    let mut ended = circuits();
    ended.data(number, 0, b"ab", true, 0).unwrap();
    assert_eq!(ended.data(number, 2, b"c", false, 0), Err(CircuitFault::FinalSize));
    let other_class = CircuitNumber::new(Side::Responder, CircuitClass::Bulk, 0, 0);
    assert_eq!(ended.data(other_class, 0, b"a", false, 0), Err(CircuitFault::CircuitNumber));
    assert_eq!(Circuits::check(theirs(CIRCUITS_MAX, 0)), Err(CircuitFault::CircuitNumber));
    assert_eq!(Circuits::check(CircuitNumber(u32::MAX)), Err(CircuitFault::CircuitNumber));
}

#[test]
fn late_packets_for_an_earlier_use_of_a_slot_are_ignored() {
    let mut circuits = circuits();
    circuits.data(theirs(3, 0), 0, b"", true, 0).unwrap();
    assert_eq!(circuits.read(theirs(3, 0)), Read::End);
    circuits.finish(theirs(3, 0)).unwrap();
    circuits.arrived(SentPart::Data { number: theirs(3, 0), offset: 0, bytes: 0, is_last: true });
    assert_eq!(circuits.count(), 0, "closed and freed");
    circuits.events.clear();
    circuits.data(theirs(3, 0), 0, b"late", false, 0).unwrap();
    circuits.peer_reset(theirs(3, 0));
    circuits.data(theirs(3, 7), 0, b"from nowhere", false, 0).unwrap();
    assert_eq!((circuits.count(), circuits.events.len()), (0, 0));
    circuits.data(theirs(3, 1), 0, b"new", false, 0).unwrap();
    assert_eq!(circuits.events, [Event::Opened(theirs(3, 1)), Event::Readable(theirs(3, 1))]);
}

#[test]
fn slot_is_reused_only_after_the_peer_freed_it() {
    let mut circuits = circuits();
    let first = circuits.open(CircuitClass::Bulk, 0).unwrap();
    circuits.reset(first).unwrap();
    assert_eq!(circuits.open(CircuitClass::Bulk, 0).unwrap().slot(), 1);
    circuits.peer_free(CircuitNumber::new(Side::Initiator, CircuitClass::Bulk, 0, 9));
    assert_eq!(circuits.open(CircuitClass::Bulk, 0).unwrap().slot(), 2);
    circuits.peer_free(first);
    let again = circuits.open(CircuitClass::Request, 0).unwrap();
    assert_eq!((again.slot(), again.generation()), (0, 1));
}

#[test]
fn peer_cannot_free_a_circuit_that_is_still_written() {
    let mut circuits = circuits();
    let number = circuits.open(CircuitClass::Bulk, 0).unwrap();
    circuits.write(number, &mut "abc".into()).unwrap();
    circuits.peer_free(number);
    assert_eq!(circuits.write(number, &mut "def".into()), Some(3));
    assert_eq!(circuits.count(), 1);
}

#[test]
fn full_receive_buffer_accepts_only_in_order_data() {
    let mut circuits = circuits();
    for at in 0..OUT_OF_ORDER_MAX as u64 {
        assert!(circuits.has_room(theirs(0, 0), at * 2 + 2));
        circuits.data(theirs(0, 0), at * 2 + 2, b"x", false, 0).unwrap();
    }
    assert!(!circuits.has_room(theirs(0, 0), 20_000));
    assert!(circuits.has_room(theirs(0, 0), 0));
    assert!(circuits.has_room(theirs(1, 0), 20_000), "other circuits are unaffected");
}

#[test]
fn credit_returns_to_the_pool() {
    let mut circuits = circuits();
    for generation in 0..3 {
        let number = CircuitNumber::new(Side::Responder, CircuitClass::Bulk, 0, generation);
        circuits.data(number, 0, &vec![0; INITIAL_CREDIT as usize], false, 0).unwrap();
        assert!(matches!(circuits.read(number), Read::Data(_)));
        assert_eq!(circuits.pool, CREDIT_POOL - INITIAL_CREDIT);
        circuits.peer_reset(number);
        assert_eq!(circuits.pool, CREDIT_POOL);
    }
}
