//! Measures the cost of one call's record: a timeline of four spans, its causes, and the histograms.
//!
//! `cargo run --release -p wirefs-mount --example record_cost` prints nanoseconds per call, the least of several rounds.

use std::hint::black_box;
use std::time::Instant;

use wirefs_metrics::{CallKind, CallLatencies, Cause, Timeline};
use wirefs_op::Time;

const ROUNDS: u32 = 9;
const CALLS: u64 = 1_000_000;

fn main() {
    let times = CallLatencies::default();
    let record = |call: u64, causes: &[Cause]| {
        let begin = Time(call * 1000);
        let mut timeline = Timeline::starting(begin, Cause::Queue);
        for (span, cause) in (1..).zip(causes) {
            timeline.extend(Time(begin.0 + span * 100), *cause);
        }
        times.add(CallKind::Read, &black_box(timeline.causes(begin, Time(begin.0 + 900))));
    };
    let round = |causes: &[Cause]| {
        let started = Instant::now();
        (0..CALLS).for_each(|call| record(black_box(call), causes));
        started.elapsed().as_nanos() as f64 / CALLS as f64
    };
    for (name, causes) in [
        ("answered by the mount alone", &[][..]),
        ("one request", &[Cause::Queue, Cause::Wire, Cause::ServerDisk, Cause::Wire][..]),
    ] {
        let least = (0..ROUNDS).map(|_| round(causes)).fold(f64::INFINITY, f64::min);
        println!("{name}: {least:.0} ns a call");
    }
}
