//! What a registry says of where nodes are.

use super::world::usual;
use crate::limits::{ANNOUNCE_INTERVAL, REGISTERED_MAX};
use crate::{Destination, Input, Node, Output};
use core::net::SocketAddr;
use wirefs_op::Time;

/// To whom a node sends at this time, the segment left out.
fn sends_to(node: &mut Node, now: Time) -> Vec<SocketAddr> {
    node.handle(now, Input::Tick);
    let outputs = std::iter::from_fn(|| node.poll());
    let to = outputs.filter_map(|output| match output {
        Output::Send { to: Destination::Address(address), .. } => Some(address),
        _ => None,
    });
    to.collect()
}

#[test]
fn who_is_registered_is_told_until_the_registry_says_otherwise() {
    let mut node = Node::new(usual(1, 1_000)).unwrap();
    let mut now = Time(1);
    assert_eq!(sends_to(&mut node, now), []);
    let registered: [SocketAddr; 2] = [([10, 8, 0, 2], 6440).into(), ([10, 8, 0, 3], 6440).into()];
    for said in [&registered[..], &registered[1..], &[]] {
        node.handle(now, Input::Registered(said));
        now = now + ANNOUNCE_INTERVAL;
        assert_eq!(sends_to(&mut node, now), said);
        now = now + ANNOUNCE_INTERVAL;
        assert_eq!(sends_to(&mut node, now), said, "again, as nobody answered");
    }
}

#[test]
fn a_registry_that_says_too_much_is_cut_short() {
    let mut node = Node::new(usual(1, 1_000)).unwrap();
    let address = |number: usize| SocketAddr::from(([10, 8, (number >> 8) as u8, number as u8], 6440));
    let many: Vec<SocketAddr> = (0..REGISTERED_MAX + 9).map(address).collect();
    assert_eq!(sends_to(&mut node, Time(1)), []);
    node.handle(Time(1), Input::Registered(&many));
    let now = Time(1) + ANNOUNCE_INTERVAL;
    assert_eq!(sends_to(&mut node, now), many[..REGISTERED_MAX]);
}
