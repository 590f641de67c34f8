//! Addresses from a registry.

use super::network::default_config;
use crate::limits::{ANNOUNCE_INTERVAL, REGISTERED_MAX};
use crate::{Destination, Node, NodeInput, NodeOutput};
use core::net::SocketAddr;
use wirefs_op::Time;

/// Returns the destinations of a node's packets at this time, without the segment.
fn sends_to(node: &mut Node, now: Time) -> Vec<SocketAddr> {
    node.handle(now, NodeInput::Tick);
    let outputs = std::iter::from_fn(|| node.poll());
    let to = outputs.filter_map(|output| match output {
        NodeOutput::Send { to: Destination::Address(address), .. } => Some(address),
        _ => None,
    });
    to.collect()
}

#[test]
fn registered_addresses_get_announcements_until_they_are_removed() {
    let mut node = Node::new(default_config(1, 1_000)).unwrap();
    let mut now = Time(1);
    assert_eq!(sends_to(&mut node, now), []);
    let registered: [SocketAddr; 2] = [([10, 8, 0, 2], 6440).into(), ([10, 8, 0, 3], 6440).into()];
    for events in [&registered[..], &registered[1..], &[]] {
        node.handle(now, NodeInput::Registered(events));
        now = now + ANNOUNCE_INTERVAL;
        assert_eq!(sends_to(&mut node, now), events);
        now = now + ANNOUNCE_INTERVAL;
        assert_eq!(sends_to(&mut node, now), events, "again, as no node answered");
    }
}

#[test]
fn registered_addresses_are_limited() {
    let mut node = Node::new(default_config(1, 1_000)).unwrap();
    let address = |number: usize| SocketAddr::from(([10, 8, (number >> 8) as u8, number as u8], 6440));
    let many: Vec<SocketAddr> = (0..REGISTERED_MAX + 9).map(address).collect();
    assert_eq!(sends_to(&mut node, Time(1)), []);
    node.handle(Time(1), NodeInput::Registered(&many));
    let now = Time(1) + ANNOUNCE_INTERVAL;
    assert_eq!(sends_to(&mut node, now), many[..REGISTERED_MAX]);
}
