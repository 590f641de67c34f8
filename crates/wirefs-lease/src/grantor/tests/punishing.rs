//! A hostile client that takes leases in many sessions and answers no recall.

use super::{A, B, Bench, C, F, G, id, recall, retry, whole};
use crate::grantor::{GrantorOutput, HolderKey, JoinOutcome, TouchOutcome};
use crate::limits::{ANSWER, MARGIN, PENALTY, PENALTY_MAX, REMOVE_AFTER, TERM};
use wirefs_op::Time;

const WAIT_MAX: u64 = ANSWER.as_secs() + TERM.as_secs() + MARGIN.as_secs();

/// An honest holder, and hostile ones of one party, each with a lease on its own file.
fn besieged(sessions: u64) -> (Bench, Vec<HolderKey>) {
    let mut bench = Bench::new(&[B]);
    let hostile: Vec<_> = (10..10 + sessions).map(HolderKey).collect();
    for key in &hostile {
        assert_eq!(bench.join_for(*key, "hostile"), JoinOutcome::Fresh);
        bench.grantor.renew(bench.now, *key);
        bench.grant(*key, id(key.0));
    }
    (bench, hostile)
}

// S-183
#[test]
fn changes_wait_once_for_all_sessions_of_a_hostile_party() {
    let (mut bench, hostile) = besieged(20);
    let all: Vec<HolderKey> = hostile.iter().copied().chain([B]).collect();
    assert_eq!(bench.touch(1, B, &[whole(id(10))]), TouchOutcome::Parked);
    bench.outputs();
    bench.pass(ANSWER.as_secs(), &all);
    // The others are asked for everything with the first miss.
    let outputs = bench.outputs();
    assert!(outputs.contains(&GrantorOutput::Expel(HolderKey(10))));
    for key in &hostile[1..] {
        assert!(outputs.contains(&recall(*key, 1, &[])), "{outputs:?}");
    }
    // All other changes wait meanwhile, and none of them longer.
    for (job, key) in (2..).zip(&hostile[1..]) {
        assert_eq!(bench.touch(job, B, &[whole(id(key.0))]), TouchOutcome::Parked);
    }
    bench.pass(WAIT_MAX, &all);
    let outputs = bench.outputs();
    for job in 1..=20 {
        assert!(outputs.contains(&retry(job)), "job {job}: {outputs:?}");
    }
}

// S-183
#[test]
fn a_punished_party_gets_no_leases_in_any_session_and_no_change_waits_for_it() {
    let (mut bench, hostile) = besieged(1);
    // Not the file that the expelled session may still believe.
    let (one, other) = (id(50), id(51));
    assert_eq!(bench.touch(1, B, &[whole(id(10))]), TouchOutcome::Parked);
    bench.outputs();
    bench.pass(ANSWER.as_secs(), &[hostile[0], B]);
    assert_eq!(bench.outputs(), [GrantorOutput::Expel(hostile[0])]);
    assert_eq!(bench.join_for(HolderKey(99), "hostile"), JoinOutcome::Fresh);
    for second in 0..PENALTY.as_secs() - 1 {
        assert_eq!(bench.read(HolderKey(99), &[one, other]), [false, false], "second {second}");
        bench.change(100 + second, B, &[whole(one)]);
        bench.pass(1, &[HolderKey(99), B]);
    }
    bench.pass(2, &[HolderKey(99), B]);
    bench.grant(HolderKey(99), one);
}

// S-183
#[test]
fn the_share_of_time_that_a_hostile_party_costs_falls_with_each_miss() {
    let (mut bench, _) = besieged(0);
    let (mut waited, mut job) = (0, 1000);
    let mut session = 100;
    let hours = 8;
    for _ in 0..hours * 3600 {
        bench.grantor.renew(bench.now, HolderKey(session));
        let hostile = HolderKey(session);
        let has_lease =
            bench.join_for(hostile, "hostile") != JoinOutcome::Full && bench.read(hostile, &[F]) == [true];
        job += 1;
        if has_lease {
            let since = bench.now;
            assert_eq!(bench.touch(job, B, &[whole(F)]), TouchOutcome::Parked);
            while !bench.outputs().contains(&retry(job)) {
                bench.pass(1, &[hostile, B]);
            }
            waited += bench.now.since(since).as_secs();
            assert!(bench.now.since(since).as_secs() <= WAIT_MAX);
            bench.grantor.end(crate::grantor::JobKey(job));
            session += 1;
        } else {
            bench.change(job, B, &[whole(F)]);
            bench.grantor.remove(hostile);
            bench.pass(1, &[B]);
        }
    }
    // 30 s, 60 s … up to an hour between two misses.
    let misses = 8 + hours * 3600 / PENALTY_MAX.as_secs();
    assert!(waited > 0 && waited <= misses * WAIT_MAX, "{waited} s in {hours} hours");
}

// S-183
#[test]
fn a_party_whose_session_is_silent_while_a_change_waits_is_punished_and_others_are_not() {
    let mut bench = Bench::new(&[A, B, C]);
    bench.grant(A, F);
    bench.grant(C, G);
    assert_eq!(bench.touch(1, B, &[whole(F)]), TouchOutcome::Parked);
    bench.pass(TERM.as_secs() + MARGIN.as_secs(), &[B, C]);
    assert!(bench.outputs().contains(&retry(1)));
    bench.grantor.renew(bench.now, A);
    assert_eq!((bench.read(A, &[G]), bench.read(C, &[id(77)])), (vec![false], vec![true]));
    // Silence that no change waits for is no miss.
    bench.pass(TERM.as_secs() + MARGIN.as_secs(), &[B]);
    bench.grantor.renew(bench.now, C);
    bench.outputs();
    assert_eq!(bench.read(C, &[id(78)]), [true]);
}

// S-183
#[test]
fn a_party_whose_session_was_silent_for_a_day_is_not_punished() {
    let mut bench = Bench::new(&[A]);
    bench.grant(A, F);
    bench.now = Time(0) + REMOVE_AFTER;
    bench.grantor.tick(bench.now);
    assert_eq!(bench.outputs(), [GrantorOutput::Expel(A)]);
    let again = HolderKey(99);
    assert_eq!(bench.join_for(again, &format!("party of {}", A.0)), JoinOutcome::Fresh);
    bench.grantor.renew(bench.now, again);
    bench.grant(again, G);
}
