use super::*;

fn series(peer: BenchPeer) -> SeriesKey {
    let workload = Workload::named("find").unwrap();
    SeriesKey { rtt: Duration::from_millis(10), workload, step: workload.step("cold").unwrap(), peer }
}

fn done(ms: u64, frames: u64) -> StepOutcome {
    StepOutcome::Done(BenchSample { elapsed: Duration::from_millis(ms), frames, bytes: frames * 100 })
}

#[test]
fn median_is_computed_per_value() {
    let mut samples = BenchSamples::default();
    for outcome in [done(30, 1), done(10, 3), done(20, 2)] {
        samples.add(series(BenchPeer::Local), outcome);
    }
    samples.add(series(BenchPeer::Sshfs), done(5, 5));
    assert_eq!(samples.median(&series(BenchPeer::Local)), Some(done(20, 2)));
    assert_eq!(samples.median(&series(BenchPeer::Sshfs)), Some(done(5, 5)));
    assert_eq!(samples.median(&series(BenchPeer::Wirefs)), None);
}

#[test]
fn stopped_run_replaces_the_median() {
    let mut samples = BenchSamples::default();
    samples.add(series(BenchPeer::Sshfs), done(30, 1));
    samples.add(series(BenchPeer::Sshfs), StepOutcome::Stopped(Duration::from_secs(60)));
    assert_eq!(
        samples.median(&series(BenchPeer::Sshfs)),
        Some(StepOutcome::Stopped(Duration::from_secs(60)))
    );
    let SeriesKey { rtt, workload, step, .. } = series(BenchPeer::Sshfs);
    assert!(samples.was_stopped(rtt, workload, step, BenchPeer::Sshfs));
    assert!(!samples.was_stopped(rtt, workload, step, BenchPeer::Local));
}
