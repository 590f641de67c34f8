use super::*;
use crate::published::{AccessSample, BatchSample, CallTimes, DirectoryVisit};

const MS: Duration = Duration::from_millis(1);

fn plan() -> PublishedPlan {
    PublishedPlan {
        runs: 3,
        killed: 10_240,
        batches: vec![1024, 5120],
        sizes: vec![64, 1024],
        rtts: vec![Duration::ZERO],
        has_sshfs: false,
        wirefs: Default::default(),
        program: Default::default(),
        scratch: Default::default(),
        stop: Default::default(),
    }
}

fn writing(peer: PublishedPeer, pieces: usize, crash: CrashPoint, elapsed: u32, restart: u32) -> BatchSample {
    BatchSample { peer, pieces, crash, elapsed: MS * elapsed, restart: MS * restart, sent_bytes: 21 << 19 }
}

fn text_of(samples: &PublishedSamples) -> String {
    let sections = to_sections(&plan(), samples, "conditions");
    sections.iter().map(|section| section.to_string()).collect()
}

fn assert_contains(text: &str, rows: &[&str]) {
    for row in rows {
        assert!(text.contains(row), "{row} is not in:\n{text}");
    }
}

#[test]
fn crash_table_shows_the_overhead_without_the_restart_and_the_source() {
    let mut samples = PublishedSamples::default();
    for elapsed in [210, 200, 190] {
        samples.batches.push(writing(PublishedPeer::Wirefs, 10_240, CrashPoint::Never, elapsed, 0));
        samples.batches.push(writing(PublishedPeer::Wirefs, 10_240, CrashPoint::Commit, elapsed + 50, 30));
        samples.batches.push(writing(PublishedPeer::Wirefs, 10_240, CrashPoint::Writes, elapsed + 80, 20));
    }
    assert_contains(
        &text_of(&samples),
        &[
            "### A server that is killed while 10 MiB in pieces of 1 KiB are written",
            "| wirefs | 200.0 | 250.0 | 30.0 | 1.10 | 280.0 | 20.0 | 1.30 |",
            "| source: SNFS | 5319.8 | 11736.2 | with it | 2.21 | 8590.7 | with it | 1.61 |",
            "| local | – | – | – | – | – | – | – |",
            "| wirefs | 10.50 | 10.50 | 10.50 |",
        ],
    );
}

#[test]
fn batch_table_compares_with_write_through() {
    let mut samples = PublishedSamples::default();
    samples.batches.push(writing(PublishedPeer::Wirefs, 1024, CrashPoint::Never, 20, 0));
    samples.batches.push(writing(PublishedPeer::Strict, 1024, CrashPoint::Never, 70, 0));
    assert_contains(&text_of(&samples), &["| 1 MiB | – | 20.0 | – | 70.0 | 3.50 |"]);
    let plots = plots(&plan(), &samples);
    let names: Vec<&str> = plots.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["batches.svg", "first-open-and-read-0ms.svg", "close-0ms.svg"]);
}

#[test]
fn access_tables_show_calls_rates_visits_and_the_source() {
    let mut samples = PublishedSamples::default();
    let (rtt, peer) = (Duration::ZERO, PublishedPeer::Wirefs);
    let calls =
        CallTimes { open_cold: MS, close: MS * 2, write: MS * 10, read_warm: MS * 5, ..CallTimes::default() };
    samples.accesses.push(AccessSample { rtt, peer, pieces: 1024, calls });
    samples.visits.push(DirectoryVisit { rtt, peer, opens: MS * 40, total: MS * 60 });
    samples.visits.push(DirectoryVisit {
        rtt,
        peer: PublishedPeer::NoPrefetch,
        opens: MS * 400,
        total: MS * 600,
    });
    assert_contains(
        &text_of(&samples),
        &[
            "| open, cold, 1 MiB | – | 1.00 | – | – |",
            "| close, 1 MiB | – | 2.00 | – | – |",
            "| read, warm | – | 210 | – | – | 4055 | 1900 |",
            "| write | – | 105 | – | – | 1030 | 601 |",
            "| open, on average | – | 1.00 | 10.0 | 90 % | 87 % |",
        ],
    );
}
