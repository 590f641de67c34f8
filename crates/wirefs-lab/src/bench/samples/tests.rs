use super::*;

fn series(peer: Peer) -> Series {
    let workload = Workload::named("find").unwrap();
    Series { rtt: Duration::from_millis(10), workload, step: workload.step("cold").unwrap(), peer }
}

fn done(ms: u64, frames: u64) -> Outcome {
    Outcome::Done(Sample { elapsed: Duration::from_millis(ms), frames, bytes: frames * 100 })
}

#[test]
fn the_median_of_each_number_is_taken_for_itself() {
    let mut samples = Samples::default();
    for outcome in [done(30, 1), done(10, 3), done(20, 2)] {
        samples.add(series(Peer::Local), outcome);
    }
    samples.add(series(Peer::Sshfs), done(5, 5));
    assert_eq!(samples.median(&series(Peer::Local)), Some(done(20, 2)));
    assert_eq!(samples.median(&series(Peer::Sshfs)), Some(done(5, 5)));
    assert_eq!(samples.median(&series(Peer::Wirefs)), None);
}

#[test]
fn one_stopped_run_spoils_the_median_and_is_told() {
    let mut samples = Samples::default();
    samples.add(series(Peer::Sshfs), done(30, 1));
    samples.add(series(Peer::Sshfs), Outcome::Stopped(Duration::from_secs(60)));
    assert_eq!(samples.median(&series(Peer::Sshfs)), Some(Outcome::Stopped(Duration::from_secs(60))));
    let Series { rtt, workload, step, .. } = series(Peer::Sshfs);
    assert!(samples.was_stopped(rtt, workload, step, Peer::Sshfs));
    assert!(!samples.was_stopped(rtt, workload, step, Peer::Local));
}
