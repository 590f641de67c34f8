use super::*;
use crate::view::files::stateless::tests::{listing, opened};

const DIR: TreeNodeId = TreeNodeId(7);
const OTHER: TreeNodeId = TreeNodeId(8);
const NOW: Time = Time(1);
const MIB: usize = 1024 * 1024;
const BEGINS: (bool, bool) = (true, false);
const ALL: (bool, bool) = (true, true);

/// A thread begins to read a listing of its own.
fn begin(readings: &mut Readings, dir: TreeNodeId, number: u64, entries: usize, part: (bool, bool)) {
    let handle = Handle(dir.0 << 32 | number);
    readings.lists(handle, opened(dir, listing(entries)));
    readings.begins(handle, number, 0, NOW + Duration::from_nanos(number));
    readings.tells((dir, number), 1, part, NOW + Duration::from_nanos(number));
}

#[test]
fn readings_that_were_left_are_ended_at_once_beyond_the_bound() {
    let mut readings = Readings::within(64 * MIB);
    for number in 0..1000 {
        begin(&mut readings, DIR, number, 1000, BEGINS);
        assert!(readings.bytes() <= 32 * MIB + 1000 * ENTRY_BYTES, "{number}: {}", readings.bytes());
    }
    assert!(readings.len() > 100, "{}", readings.len());
    assert!(readings.find((DIR, 0)).is_none() && readings.find((DIR, 999)).is_some());
    // However short they are.
    for number in 1000..1000 + 2 * READINGS_MAX as u64 {
        begin(&mut readings, DIR, number, 0, BEGINS);
        assert!(readings.len() <= READINGS_MAX + 1);
    }
}

#[test]
fn a_directory_with_many_readings_gives_up_its_own() {
    let mut readings = Readings::within(64 * MIB);
    begin(&mut readings, OTHER, 0, 1000, BEGINS);
    (1..1000).for_each(|number| begin(&mut readings, DIR, number, 1000, BEGINS));
    assert!(readings.find((OTHER, 0)).is_some(), "its reader may come back");
}

// S-31
#[test]
fn reading_in_progress_stays_when_other_readings_end() {
    let mut readings = Readings::within(64 * MIB);
    let shared = Handle(1);
    readings.lists(shared, opened(DIR, listing(100)));
    readings.begins(shared, 0, 0, NOW);
    for thread in [2, 3, 3] {
        readings.tells((DIR, 0), thread, BEGINS, NOW);
    }
    // The same listing to its end, by another and by one of them.
    for thread in [4, 3] {
        readings.tells((DIR, 0), thread, ALL, NOW);
        readings.ended(DIR, 0, thread);
        readings.ended(DIR, 0, thread);
    }
    for number in 1..5000 {
        begin(&mut readings, OTHER, number, 1, ALL);
        readings.ended(OTHER, 0, 1);
    }
    begin(&mut readings, OTHER, 5000, 80_000, ALL);
    readings.end_slow(NOW);
    assert!(readings.len() <= DONE_MAX + 2, "{}", readings.len());
    assert!(readings.find((DIR, 0)).is_some());
    // They end as well.
    readings.tells((DIR, 0), 2, (false, true), NOW);
    readings.ended(DIR, 0, 2);
    begin(&mut readings, OTHER, 5001, 80_000, ALL);
    assert!(readings.find((DIR, 0)).is_none());
}

#[test]
fn idle_reading_is_evicted_under_memory_pressure() {
    let mut readings = Readings::within(64 * MIB);
    (0..70).for_each(|number| begin(&mut readings, DIR, number, 1000, BEGINS));
    let late = NOW + SLOW + Duration::from_secs(1);
    readings.tells((DIR, 0), 1, (false, false), late);
    readings.end_slow(NOW);
    assert_eq!(readings.len(), 70);
    readings.end_slow(late);
    assert!(readings.bytes() <= 16 * MIB && readings.len() > 50, "{}", readings.len());
    assert!(readings.find((DIR, 0)).is_some());
    readings.retain(|_| false);
    assert_eq!((readings.len(), readings.bytes()), (0, 0));
}

#[test]
fn what_readings_share_is_counted_once_and_until_the_last_is_gone() {
    let mut readings = Readings::within(64 * MIB);
    let shared = listing(100);
    for handle in 1..4 {
        readings.lists(Handle(handle), opened(DIR, Arc::clone(&shared)));
        readings.begins(Handle(handle), handle, 0, NOW);
    }
    let bytes = 100 * ENTRY_BYTES;
    assert_eq!(readings.bytes(), bytes + 6 * READING_BYTES);
    // One of them goes on with entries of its own.
    let mut more = listing(10).to_vec();
    readings.listing_mut(Handle(1)).unwrap().entries.append(&mut more);
    readings.weigh(Handle(1));
    assert_eq!(readings.bytes(), 2 * bytes + 10 * ENTRY_BYTES + 6 * READING_BYTES);
    readings.end((DIR, 2));
    readings.end((DIR, 1));
    assert_eq!(readings.bytes(), bytes + 2 * READING_BYTES);
    readings.end((DIR, 3));
    assert_eq!(readings.bytes(), 0);
    assert!(readings.plain.is_empty() && readings.by_use.is_empty() && readings.of.is_empty());
}

#[test]
fn listing_without_readers_is_dropped() {
    let mut readings = Readings::within(64 * MIB);
    readings.lists(Handle(1), opened(DIR, listing(3)));
    readings.drop_vain(Handle(1));
    assert_eq!((readings.bytes(), readings.of(DIR).count()), (0, 0));
}
