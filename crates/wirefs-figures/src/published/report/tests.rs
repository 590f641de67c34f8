use super::*;
use crate::published::{Access, Calls, Visit, Writing};

const MS: Duration = Duration::from_millis(1);

fn plan() -> Plan {
    Plan {
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

fn writing(peer: Peer, pieces: usize, crash: Crash, took: u32, restart: u32) -> Writing {
    Writing { peer, pieces, crash, took: MS * took, restart: MS * restart, sent_bytes: 21 << 19 }
}

fn text_of(samples: &Samples) -> String {
    let sections = to_sections(&plan(), samples, "conditions");
    sections.iter().map(|section| section.to_string()).collect()
}

fn has(text: &str, rows: &[&str]) {
    for row in rows {
        assert!(text.contains(row), "{row} is not in:\n{text}");
    }
}

#[test]
fn what_a_crash_costs_beyond_the_restart_stands_beside_what_the_source_published() {
    let mut samples = Samples::default();
    for took in [210, 200, 190] {
        samples.writings.push(writing(Peer::Wirefs, 10_240, Crash::None, took, 0));
        samples.writings.push(writing(Peer::Wirefs, 10_240, Crash::Commit, took + 50, 30));
        samples.writings.push(writing(Peer::Wirefs, 10_240, Crash::Writes, took + 80, 20));
    }
    has(
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
fn batches_stand_beside_what_is_written_through() {
    let mut samples = Samples::default();
    samples.writings.push(writing(Peer::Wirefs, 1024, Crash::None, 20, 0));
    samples.writings.push(writing(Peer::Strict, 1024, Crash::None, 70, 0));
    has(&text_of(&samples), &["| 1 MiB | – | 20.0 | – | 70.0 | 3.50 |"]);
    let figures = figures(&plan(), &samples);
    let names: Vec<&str> = figures.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["batches.svg", "first-open-and-read-0ms.svg", "close-0ms.svg"]);
}

#[test]
fn calls_rates_and_visits_stand_beside_what_the_source_published() {
    let mut samples = Samples::default();
    let (rtt, peer) = (Duration::ZERO, Peer::Wirefs);
    let calls = Calls { open_cold: MS, close: MS * 2, write: MS * 10, read_warm: MS * 5, ..Calls::default() };
    samples.accesses.push(Access { rtt, peer, pieces: 1024, calls });
    samples.visits.push(Visit { rtt, peer, opens: MS * 40, whole: MS * 60 });
    samples.visits.push(Visit { rtt, peer: Peer::Unasked, opens: MS * 400, whole: MS * 600 });
    has(
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
