//! Delay and rate. A noisy machine may make anything late, so only "not earlier" is claimed here;
//! `wirefs-lab check` measures how exact the delays are.

use std::time::{Duration, Instant};

use wirefs_lab::{LinkProfile, probe};

use crate::world::world;

#[test]
fn no_datagram_arrives_before_its_delay_and_none_is_missing() {
    let delay = Duration::from_millis(20);
    let w = world("delay", LinkProfile::rtt(2 * delay).with(|lane| lane.jitter = Duration::from_millis(2)));
    let (from, to) = ((&w.server, w.link.address_a()), (&w.client, w.link.address_b()));
    let errors = probe::delay_errors(from, to, delay, 10_000_000, Duration::from_millis(500)).unwrap();
    assert_eq!(errors.received(), errors.sent);
    assert!(errors.quantile_ms(0.0) >= 0.0, "{}", errors.quantile_ms(0.0));
}

#[test]
fn a_round_trip_takes_both_delays_and_a_new_profile_counts_at_once() {
    let w = world("rtt", LinkProfile::rtt(Duration::from_millis(30)));
    let trips = |count| probe::round_trips(&w.client, &w.server, w.link.address_a(), count).unwrap();
    assert!(trips(5)[0] >= Duration::from_millis(30));
    let mut lopsided = w.link.profile();
    lopsided.a_to_b.delay = Duration::from_millis(50);
    w.link.set_profile(lopsided).unwrap();
    assert!(trips(5)[0] >= Duration::from_millis(65));
}

#[test]
fn a_rate_is_not_exceeded_and_the_queue_drops_what_is_too_much() {
    let w = world("rate", LinkProfile::default().with(|lane| lane.rate_bits = Some(16_000_000)));
    let begin = Instant::now();
    let run = probe::tcp_transfer(&w.client, &w.server, w.link.address_a(), 1_000_000).unwrap();
    assert_eq!(run.bytes, 1_000_000);
    assert!(begin.elapsed() >= Duration::from_millis(500));

    let before = w.link.counters();
    let datagrams = w.datagrams();
    for _ in 0..2_000 {
        datagrams.client.send(&[0; 1_400]).unwrap();
    }
    crate::world::wait_until(|| w.link.counters().since(&before).b_to_a.offered_frames >= 2_000);
    let counted = w.link.counters().since(&before).b_to_a;
    assert!(counted.dropped_by_queue > 0, "{counted:?}");
}

#[test]
fn a_larger_mtu_carries_larger_frames() {
    let w = world("mtu", LinkProfile { mtu: 9_000, ..LinkProfile::default() });
    let datagrams = w.datagrams();
    datagrams.client.send(&[7; 8_900]).unwrap();
    let mut buffer = [0; 9_000];
    assert_eq!(datagrams.server.recv(&mut buffer).unwrap(), 8_900);
    let counted = w.link.counters().b_to_a;
    assert_eq!((counted.delivered_frames, counted.delivered_bytes), (1, 8_900 + 42));
}
