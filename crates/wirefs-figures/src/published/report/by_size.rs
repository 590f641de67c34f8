//! The AFS-like system's figures.

use std::time::Duration;

use super::{header, median, mib, ms, names, row, size};
use crate::published::{Access, Calls, FILE_PIECES, FILES, Peer, Plan, Samples, Visit};

/// What a call took.
type Call = fn(&Calls) -> Duration;

/// What a part of a visit took.
type Part = fn(&Visit) -> Duration;

/// The calls of the tables.
const CALLS: [(&str, Call); 6] = [
    ("open, cold", |calls| calls.open_cold),
    ("read, cold", |calls| calls.read_cold),
    ("open, warm", |calls| calls.open_warm),
    ("read, warm", |calls| calls.read_warm),
    ("write", |calls| calls.write),
    ("close", |calls| calls.close),
];
/// Those of the pictures.
pub(super) const SHOWN: [(&str, Call); 2] =
    [("first open and read", |calls| calls.open_cold + calls.read_cold), ("close", |calls| calls.close)];
/// What the source says of its rates, in MB/s: its local file system, itself.
const SOURCE_RATES: [(&str, &str, &str); 2] = [("read, warm", "4055", "1900"), ("write", "1030", "601")];
/// What the source says that fetching ahead takes off `open`, in hundredths.
const SOURCE_GAIN: &str = "87 %";

fn of(samples: &Samples, rtt: Duration, peer: Peer, pieces: usize) -> impl Iterator<Item = &Access> {
    let is_one = move |it: &&Access| it.rtt == rtt && it.peer == peer && it.pieces == pieces;
    samples.accesses.iter().filter(is_one)
}

/// How long a call took.
pub(super) fn median_of(
    samples: &Samples,
    rtt: Duration,
    peer: Peer,
    pieces: usize,
    call: Call,
) -> Option<Duration> {
    median(of(samples, rtt, peer, pieces).map(|it| call(&it.calls)))
}

/// All tables of one round-trip time.
pub(super) fn tables(plan: &Plan, samples: &Samples, rtt: Duration) -> String {
    let peers = plan.access_peers();
    let mut out = String::from("Milliseconds; reads and writes of the whole file in blocks of 64 KiB:\n\n");
    out.push_str(&header("call, file", &names(&peers)));
    for (name, call) in CALLS {
        for &pieces in &plan.sizes {
            let cells: Vec<String> =
                peers.iter().map(|peer| ms(median_of(samples, rtt, *peer, pieces, call))).collect();
            out.push_str(&row(&format!("{name}, {}", size(pieces)), &cells));
        }
    }
    out.push_str(&rates(plan, samples, rtt, &peers));
    out.push_str(&visits(plan, samples, rtt));
    for (name, _) in SHOWN {
        let file = format!("{}-{}ms.svg", name.replace(' ', "-"), rtt.as_millis());
        out.push_str(&format!("\n![{name} by size](figures/{file})\n"));
    }
    out
}

/// The largest file as a rate.
fn rates(plan: &Plan, samples: &Samples, rtt: Duration, peers: &[Peer]) -> String {
    let Some(&pieces) = plan.sizes.last() else { return String::new() };
    let columns = names(peers).into_iter().chain(["source: ext3".to_owned(), "source: AFS-like".to_owned()]);
    let mut out = format!("\nMB/s of {}:\n\n", size(pieces));
    out.push_str(&header("call", &columns.collect::<Vec<_>>()));
    for ((name, call), (_, local, afs)) in CALLS.iter().filter_map(|it| {
        SOURCE_RATES.iter().find(|(source, _, _)| *source == it.0).map(|source| (*it, *source))
    }) {
        let rate = |peer: &Peer| {
            let took = median_of(samples, rtt, *peer, pieces, call).filter(|took| !took.is_zero());
            took.map_or("–".to_owned(), |took| {
                format!("{:.0}", mib(pieces) * 1.048_576 / took.as_secs_f64())
            })
        };
        let cells: Vec<String> = peers.iter().map(rate).chain([local.to_owned(), afs.to_owned()]).collect();
        out.push_str(&row(name, &cells));
    }
    out
}

/// With and without fetching ahead.
fn visits(plan: &Plan, samples: &Samples, rtt: Duration) -> String {
    let peers = plan.visit_peers();
    let mut out = format!(
        "\nThe {FILES} files of {FILE_PIECES} KiB of one directory, opened, read and closed one after the other for the first time, \
         milliseconds; the listing before it not counted:\n\n"
    );
    let columns: Vec<String> =
        names(&peers).into_iter().chain(["taken off".to_owned(), "source: taken off".to_owned()]).collect();
    out.push_str(&header("calls", &columns));
    let shown: [(&str, Part, &str); 2] = [
        ("open, on average", |visit| visit.opens / FILES as u32, SOURCE_GAIN),
        ("all", |visit| visit.whole, "–"),
    ];
    for (name, part, source) in shown {
        let took = |peer: Peer| {
            let those = samples.visits.iter().filter(|it| it.rtt == rtt && it.peer == peer);
            median(those.map(part))
        };
        let gain = took(Peer::Wirefs).zip(took(Peer::Unasked).filter(|without| !without.is_zero()));
        let gain = gain.map_or("–".to_owned(), |(with, without)| {
            format!("{:.0} %", (1.0 - with.as_secs_f64() / without.as_secs_f64()) * 100.0)
        });
        let cells = peers.iter().map(|peer| ms(took(*peer)));
        let cells: Vec<String> = cells.chain([gain, source.to_owned()]).collect();
        out.push_str(&row(name, &cells));
    }
    out
}
