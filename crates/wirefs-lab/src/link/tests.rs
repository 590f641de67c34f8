use std::time::Duration;

use super::*;
use crate::profile::{LaneProfile, Probability};

#[test]
fn directions_have_separate_delays_and_the_deadline_is_the_earlier() {
    let mut profile = LinkProfile::rtt(Duration::from_millis(20));
    profile.b_to_a.delay = Duration::from_millis(3);
    let mut link = Link::new(profile);
    link.push(Time(0), Direction::AToB, vec![1; 60]);
    assert_eq!(link.deadline(), Some(Time(10_000_000)));
    link.push(Time(0), Direction::BToA, vec![2; 60]);
    assert_eq!(link.deadline(), Some(Time(3_000_000)));
    assert_eq!(link.poll(Time(3_000_000), Direction::AToB), None);
    assert_eq!(link.poll(Time(3_000_000), Direction::BToA), Some(vec![2; 60]));
}

#[test]
fn directions_lose_different_frames() {
    let loss = Probability::percent(50);
    let mut link = Link::new(LinkProfile::symmetric(LaneProfile { loss, ..LaneProfile::default() }));
    let mut arrived = [Vec::new(), Vec::new()];
    for nth in 0..100u8 {
        for (direction, arrived) in Direction::BOTH.into_iter().zip(&mut arrived) {
            link.push(Time(0), direction, vec![nth; 60]);
            arrived.extend(link.poll(Time(0), direction).map(|frame| frame[0]));
        }
    }
    assert_ne!(arrived[0], arrived[1]);
}

#[test]
fn single_direction_can_be_cut() {
    let mut link = Link::new(LinkProfile::default());
    link.cut(Direction::AToB);
    for direction in Direction::BOTH {
        link.push(Time(0), direction, vec![0; 60]);
    }
    assert_eq!(link.poll(Time(0), Direction::AToB), None);
    assert!(link.poll(Time(0), Direction::BToA).is_some());
    let counters = link.counters();
    assert_eq!((counters.a_to_b.dropped_by_cut, counters.b_to_a.delivered_frames), (1, 1));
}

#[test]
fn counters_since_are_the_difference_of_two_readings() {
    let mut link = Link::new(LinkProfile::default());
    link.push(Time(0), Direction::AToB, vec![0; 60]);
    let before = link.counters();
    link.push(Time(0), Direction::AToB, vec![0; 70]);
    let span = link.counters().since(&before);
    assert_eq!((span.offered_frames(), span.offered_bytes()), (1, 70));
    assert!(span.to_json().starts_with("{\"a_to_b\":{\"offered_frames\":1,\"offered_bytes\":70,"));
}
