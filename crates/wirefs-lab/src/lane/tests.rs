use std::time::Duration;

use super::*;
use crate::profile::Probability;

const MS: u64 = 1_000_000;

fn lane(change: impl FnOnce(&mut LaneProfile)) -> EmulatedLane {
    let mut profile = LaneProfile::default();
    change(&mut profile);
    EmulatedLane::new(profile, 42)
}

fn frame(number: u32) -> Vec<u8> {
    let mut bytes = vec![0; 100];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn number(frame: &[u8]) -> u32 {
    u32::from_le_bytes(frame[..4].try_into().unwrap())
}

/// Pushes frames `0..count`, `gap_ns` apart, then polls the lane until it is empty; returns (departure, frame) pairs.
fn run(lane: &mut EmulatedLane, count: u32, gap_ns: u64) -> Vec<(Time, Vec<u8>)> {
    let mut out = Vec::new();
    for index in 0..count {
        let now = Time(u64::from(index) * gap_ns);
        while let Some(due) = lane.deadline().filter(|due| *due <= now) {
            out.push((due, lane.poll(due).unwrap()));
        }
        lane.push(now, frame(index));
    }
    while let Some(due) = lane.deadline() {
        out.push((due, lane.poll(due).unwrap()));
    }
    out
}

fn balanced(lane: &EmulatedLane) -> bool {
    let counted = lane.counters();
    counted.offered_frames + counted.duplicated
        == counted.delivered_frames
            + counted.dropped_by_queue
            + counted.dropped_by_loss
            + counted.dropped_by_cut
            + lane.held_frames() as u64
}

#[test]
fn frame_leaves_exactly_after_the_delay() {
    let mut lane = lane(|profile| profile.delay = Duration::from_millis(42));
    lane.push(Time(5), frame(0));
    assert_eq!(lane.deadline(), Some(Time(5 + 42 * MS)));
    assert_eq!(lane.poll(Time(4 + 42 * MS)), None);
    assert_eq!(lane.poll(Time(5 + 42 * MS)), Some(frame(0)));
    assert_eq!(lane.deadline(), None);
}

#[test]
fn jitter_adds_to_the_delay_and_keeps_the_order() {
    let mut lane = lane(|profile| {
        profile.delay = Duration::from_millis(10);
        profile.jitter = Duration::from_millis(5);
    });
    let out = run(&mut lane, 500, MS / 2);
    let numbers: Vec<u32> = out.iter().map(|(_, frame)| number(frame)).collect();
    assert_eq!(numbers, (0..500).collect::<Vec<_>>());
    let spans: Vec<u64> = out.iter().map(|(at, frame)| at.0 - u64::from(number(frame)) * MS / 2).collect();
    assert!(spans.iter().all(|span| (10 * MS..=15 * MS).contains(span)));
    assert!(spans.iter().any(|span| *span > 14 * MS));
}

#[test]
fn loss_has_its_rate_and_the_seed_determines_the_frames() {
    let survivors = |seed| {
        let loss = Probability::percent(5);
        let mut lane = EmulatedLane::new(LaneProfile { loss, ..LaneProfile::default() }, seed);
        let out: Vec<u32> = run(&mut lane, 10_000, 1_000).iter().map(|(_, frame)| number(frame)).collect();
        assert!(balanced(&lane));
        assert_eq!(lane.counters().dropped_by_loss, 10_000 - out.len() as u64);
        out
    };
    // 5 % of 10,000 is 500 with a standard deviation of 22.
    assert!((9_400..=9_600).contains(&survivors(1).len()), "{}", survivors(1).len());
    assert_eq!(survivors(1), survivors(1));
    assert_ne!(survivors(1), survivors(2));
}

#[test]
fn other_probabilities_do_not_change_the_lost_frames() {
    let survivors = |duplicate: Probability| {
        let loss = Probability::percent(10);
        let mut lane = EmulatedLane::new(LaneProfile { loss, duplicate, ..LaneProfile::default() }, 9);
        let mut out: Vec<u32> = run(&mut lane, 2_000, 1_000).iter().map(|(_, frame)| number(frame)).collect();
        out.dedup();
        out
    };
    assert_eq!(survivors(Probability::NEVER), survivors(Probability::percent(50)));
}

#[test]
fn duplicates_arrive_twice_and_are_counted() {
    let mut lane = lane(|profile| profile.duplicate = Probability::ALWAYS);
    let out = run(&mut lane, 100, 1_000);
    assert_eq!(out.len(), 200);
    assert!(out.chunks(2).all(|pair| pair[0].1 == pair[1].1));
    assert_eq!(lane.counters().duplicated, 100);
    assert!(balanced(&lane));
}

#[test]
fn reordered_frames_are_overtaken_and_none_is_lost() {
    let mut lane = lane(|profile| {
        profile.delay = Duration::from_millis(10);
        profile.reorder = Probability::percent(10);
        profile.reorder_delay = Duration::from_millis(3);
    });
    let out: Vec<u32> = run(&mut lane, 1_000, MS).iter().map(|(_, frame)| number(frame)).collect();
    let overtaken = out.windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert!(overtaken > 50, "{overtaken}");
    assert!((70..=130).contains(&lane.counters().reordered));
    let mut sorted = out;
    sorted.sort_unstable();
    assert_eq!(sorted, (0..1_000).collect::<Vec<_>>());
}

#[test]
fn corruption_flips_one_bit_after_the_ethernet_header() {
    let mut lane = lane(|profile| profile.corrupt = Probability::ALWAYS);
    for (_, got) in run(&mut lane, 200, 1_000) {
        assert_eq!(got[..14], frame(number(&got))[..14]);
        let flipped: u32 = got.iter().zip(frame(number(&got))).map(|(a, b)| (a ^ b).count_ones()).sum();
        assert_eq!(flipped, 1);
    }
    assert_eq!(lane.counters().corrupted, 200);
    lane.push(Time(MS), vec![1; 14]);
    assert_eq!(lane.poll(Time(MS)), Some(vec![1; 14]));
}

#[test]
fn rate_spaces_frames_by_size() {
    // 100 bytes at 800 kbit/s: one millisecond each.
    let mut lane = lane(|profile| {
        profile.rate_bits = Some(800_000);
        profile.delay = Duration::from_millis(5);
    });
    let leaves: Vec<u64> = run(&mut lane, 50, 0).iter().map(|(at, _)| at.0).collect();
    assert_eq!(leaves, (1..=50).map(|nth| (5 + nth) * MS).collect::<Vec<_>>());
}

#[test]
fn full_queue_drops_new_frames() {
    let mut lane = lane(|profile| {
        profile.rate_bits = Some(800_000);
        profile.queue_bytes = Some(1_000);
    });
    let out: Vec<u32> = run(&mut lane, 50, 0).iter().map(|(_, frame)| number(frame)).collect();
    assert_eq!(out, (0..10).collect::<Vec<_>>());
    assert_eq!(lane.counters().dropped_by_queue, 40);
    assert!(balanced(&lane));
}

#[test]
fn queue_smaller_than_a_frame_passes_one_at_a_time() {
    let mut lane = lane(|profile| {
        profile.rate_bits = Some(800_000);
        profile.queue_bytes = Some(10);
    });
    assert_eq!(run(&mut lane, 5, 2 * MS).len(), 5);
}

#[test]
fn cut_drops_frames_in_flight_and_new_ones_until_restored() {
    let mut lane = lane(|profile| profile.delay = Duration::from_millis(10));
    lane.push(Time(0), frame(0));
    lane.cut();
    assert_eq!(lane.deadline(), None);
    lane.push(Time(MS), frame(1));
    assert_eq!(lane.poll(Time(100 * MS)), None);
    lane.heal();
    lane.push(Time(100 * MS), frame(2));
    assert_eq!(lane.poll(Time(110 * MS)), Some(frame(2)));
    assert_eq!(lane.counters().dropped_by_cut, 2);
    assert!(balanced(&lane));
}

#[test]
fn shorter_delay_does_not_reorder_frames() {
    let mut lane = lane(|profile| profile.delay = Duration::from_millis(100));
    lane.push(Time(0), frame(0));
    lane.set_profile(LaneProfile::default());
    lane.push(Time(MS), frame(1));
    assert_eq!(lane.poll(Time(99 * MS)), None);
    assert_eq!(lane.poll(Time(100 * MS)), Some(frame(0)));
    assert_eq!(lane.poll(Time(100 * MS)), Some(frame(1)));
}

#[test]
fn full_lane_drops_frames() {
    let mut lane = lane(|profile| profile.delay = Duration::from_secs(1));
    let big = 1 << 20;
    for _ in 0..300 {
        lane.push(Time(0), vec![0; big]);
    }
    assert_eq!(lane.held_frames() as u64, HELD_BYTES_MAX / big as u64);
    assert_eq!(lane.counters().dropped_by_queue, 300 - HELD_BYTES_MAX / big as u64);
}
