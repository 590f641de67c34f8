//! Delay and rate. A busy machine may delay anything, so these tests check only lower bounds; `wirefs-lab check`
//! measures the exactness.

use std::time::{Duration, Instant};

use wirefs_lab::{LinkProfile, probe};

use crate::linked_hosts::linked_hosts;

#[test]
fn datagrams_arrive_after_the_delay_and_none_is_lost() {
    let delay = Duration::from_millis(20);
    let w = linked_hosts(
        "delay",
        LinkProfile::rtt(2 * delay).with(|lane| lane.jitter = Duration::from_millis(2)),
    );
    let (from, to) = ((&w.server, w.link.address_a()), (&w.client, w.link.address_b()));
    let errors = probe::delay_errors(from, to, delay, 10_000_000, Duration::from_millis(500)).unwrap();
    assert_eq!(errors.received(), errors.sent);
    assert!(errors.quantile_ms(0.0) >= 0.0, "{}", errors.quantile_ms(0.0));
}

#[test]
fn round_trip_includes_both_delays_and_profile_changes_apply_at_once() {
    let w = linked_hosts("rtt", LinkProfile::rtt(Duration::from_millis(30)));
    let trips = |count| probe::round_trips(&w.client, &w.server, w.link.address_a(), count).unwrap();
    assert!(trips(5)[0] >= Duration::from_millis(30));
    let mut lopsided = w.link.profile();
    lopsided.a_to_b.delay = Duration::from_millis(50);
    w.link.set_profile(lopsided).unwrap();
    assert!(trips(5)[0] >= Duration::from_millis(65));
}

#[test]
fn rate_limit_holds_and_the_full_queue_drops_frames() {
    let w = linked_hosts("rate", LinkProfile::default().with(|lane| lane.rate_bits = Some(16_000_000)));
    let begin = Instant::now();
    let run = probe::tcp_transfer(&w.client, &w.server, w.link.address_a(), 1_000_000).unwrap();
    assert_eq!(run.bytes, 1_000_000);
    assert!(begin.elapsed() >= Duration::from_millis(500));

    let before = w.link.counters();
    let datagrams = w.datagrams();
    for _ in 0..2_000 {
        datagrams.client.send(&[0; 1_400]).unwrap();
    }
    crate::linked_hosts::wait_until(|| w.link.counters().since(&before).b_to_a.offered_frames >= 2_000);
    let counted = w.link.counters().since(&before).b_to_a;
    assert!(counted.dropped_by_queue > 0, "{counted:?}");
}

#[test]
fn larger_mtu_carries_larger_frames() {
    let w = linked_hosts("mtu", LinkProfile { mtu: 9_000, ..LinkProfile::default() });
    let datagrams = w.datagrams();
    datagrams.client.send(&[7; 8_900]).unwrap();
    let mut buffer = [0; 9_000];
    assert_eq!(datagrams.server.recv(&mut buffer).unwrap(), 8_900);
    let counted = w.link.counters().b_to_a;
    assert_eq!((counted.delivered_frames, counted.delivered_bytes), (1, 8_900 + 42));
}
