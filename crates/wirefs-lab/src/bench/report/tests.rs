use std::path::PathBuf;
use std::sync::Arc;

use super::super::samples::BenchSample;
use super::*;
use crate::profile::LinkProfile;

fn plan() -> BenchPlan {
    BenchPlan {
        rtts: vec![Duration::ZERO, Duration::from_millis(85)],
        profile: LinkProfile::default(),
        buffer_bytes: None,
        workloads: ["find", "bulk-read"].map(|name| Workload::named(name).unwrap()).to_vec(),
        peers: vec![BenchPeer::Local, BenchPeer::Bare, BenchPeer::Sshfs],
        runs: 1,
        scale: Scale::FULL,
        short: false,
        pauses: true,
        rest: Duration::ZERO,
        limit: Duration::from_secs(600),
        wirefs: PathBuf::new(),
        wirefs_lab: PathBuf::new(),
        scratch: PathBuf::new(),
        stop: Arc::default(),
    }
}

fn add(samples: &mut BenchSamples, rtt_ms: u64, workload: &str, peer: BenchPeer, outcome: StepOutcome) {
    let workload = Workload::named(workload).unwrap();
    let series = SeriesKey { rtt: Duration::from_millis(rtt_ms), workload, step: &workload.steps[0], peer };
    samples.add(series, outcome);
}

fn done(ms: u64) -> StepOutcome {
    StepOutcome::Done(BenchSample { elapsed: Duration::from_millis(ms), frames: 7, bytes: 2_048 })
}

#[test]
fn section_shows_time_round_trips_and_ratio() {
    let mut samples = BenchSamples::default();
    add(&mut samples, 85, "find", BenchPeer::Local, done(15));
    add(&mut samples, 85, "find", BenchPeer::Sshfs, done(20_415));
    let text = tables(&plan(), &samples, Duration::from_millis(85));
    let row = "| find -size +1 over 2000 files in 100 directories, cold | 15.0 ms | – | 20.4 s · 240 RTT · × 1361 |";
    assert!(text.contains(row), "{text}");
    assert!(text.contains("cold | – | 7 · 2.00 KiB |"), "{text}");
    assert!(!text.contains("warm"), "{text}");
}

#[test]
fn transfer_shows_its_rate_and_stopped_step_its_limit() {
    let mut samples = BenchSamples::default();
    add(&mut samples, 0, "bulk-read", BenchPeer::Local, done(100));
    add(&mut samples, 0, "bulk-read", BenchPeer::Bare, done(500));
    add(&mut samples, 0, "bulk-read", BenchPeer::Sshfs, StepOutcome::Stopped(Duration::from_secs(60)));
    let mut plan = plan();
    let text = tables(&plan, &samples, Duration::ZERO);
    let sections = to_markdown(&plan, &samples, "Quiet machine.");
    let headings: Vec<&str> = sections.iter().map(|section| section.heading.as_str()).collect();
    assert_eq!(headings, ["RTT 0 ms, plain veth pair", "RTT 85 ms"]);
    assert_eq!(sections[0].text, format!("Quiet machine.\n\n{text}"));
    assert!(text.contains("| 500 ms · 536.9 MB/s | > 60.0 s (stopped) |"), "{text}");

    plan.peers.push(BenchPeer::Wirefs);
    add(&mut samples, 0, "bulk-read", BenchPeer::Wirefs, done(1_000));
    let text = tables(&plan, &samples, Duration::ZERO);
    assert!(text.contains("(stopped) | 1.00 s · 268.4 MB/s · 50 % of bare · × 10.0 |"), "{text}");
}

#[test]
fn json_has_an_object_for_each_run() {
    let mut samples = BenchSamples::default();
    add(&mut samples, 10, "find", BenchPeer::Local, done(15));
    add(&mut samples, 10, "find", BenchPeer::Local, StepOutcome::Failed("no \"find\"".to_owned()));
    let text = to_json(&samples);
    assert_eq!(text.matches("\"workload\":\"find\"").count(), 2);
    assert!(
        text.contains("\"seconds\":0.015,\"frames\":7") && text.contains(r#""failed":"no \"find\"""#),
        "{text}"
    );
}
