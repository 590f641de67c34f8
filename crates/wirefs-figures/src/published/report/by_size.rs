//! The tables of the AFS-like system's evaluation.

use std::time::Duration;

use super::{header, median, mib, ms, names, row, size};
use crate::published::{
    AccessSample, CallTimes, DirectoryVisit, FILE_PIECES, FILES, PublishedPeer, PublishedPlan,
    PublishedSamples,
};

/// Selects a time of an access sample.
type CallTime = fn(&CallTimes) -> Duration;

/// Selects a time of a directory visit.
type VisitTime = fn(&DirectoryVisit) -> Duration;

/// The rows of the tables.
const CALLS: [(&str, CallTime); 6] = [
    ("open, cold", |calls| calls.open_cold),
    ("read, cold", |calls| calls.read_cold),
    ("open, warm", |calls| calls.open_warm),
    ("read, warm", |calls| calls.read_warm),
    ("write", |calls| calls.write),
    ("close", |calls| calls.close),
];
/// The calls that have plots.
pub(super) const PLOTTED_CALLS: [(&str, CallTime); 2] =
    [("first open and read", |calls| calls.open_cold + calls.read_cold), ("close", |calls| calls.close)];
/// The source's rates, in MB/s: its local file system, the AFS-like system.
const SOURCE_RATES: [(&str, &str, &str); 2] = [("read, warm", "4055", "1900"), ("write", "1030", "601")];
/// The source's reduction of the time of `open` by prefetching.
const SOURCE_REDUCTION: &str = "87 %";

fn matching(
    samples: &PublishedSamples,
    rtt: Duration,
    peer: PublishedPeer,
    pieces: usize,
) -> impl Iterator<Item = &AccessSample> {
    let is_one = move |it: &&AccessSample| it.rtt == rtt && it.peer == peer && it.pieces == pieces;
    samples.accesses.iter().filter(is_one)
}

/// Returns the median time of a call.
pub(super) fn median_of(
    samples: &PublishedSamples,
    rtt: Duration,
    peer: PublishedPeer,
    pieces: usize,
    call: CallTime,
) -> Option<Duration> {
    median(matching(samples, rtt, peer, pieces).map(|it| call(&it.calls)))
}

/// Formats all tables of one round-trip time.
pub(super) fn tables(plan: &PublishedPlan, samples: &PublishedSamples, rtt: Duration) -> String {
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
    for (name, _) in PLOTTED_CALLS {
        let file = format!("{}-{}ms.svg", name.replace(' ', "-"), rtt.as_millis());
        out.push_str(&format!("\n![{name} by size](figures/{file})\n"));
    }
    out
}

/// Formats the table of rates, for the largest file.
fn rates(plan: &PublishedPlan, samples: &PublishedSamples, rtt: Duration, peers: &[PublishedPeer]) -> String {
    let Some(&pieces) = plan.sizes.last() else { return String::new() };
    let columns = names(peers).into_iter().chain(["source: ext3".to_owned(), "source: AFS-like".to_owned()]);
    let mut out = format!("\nMB/s of {}:\n\n", size(pieces));
    out.push_str(&header("call", &columns.collect::<Vec<_>>()));
    for ((name, call), (_, local, afs)) in CALLS.iter().filter_map(|it| {
        SOURCE_RATES.iter().find(|(source, _, _)| *source == it.0).map(|source| (*it, *source))
    }) {
        let rate = |peer: &PublishedPeer| {
            let elapsed = median_of(samples, rtt, *peer, pieces, call).filter(|elapsed| !elapsed.is_zero());
            elapsed.map_or("–".to_owned(), |elapsed| {
                format!("{:.0}", mib(pieces) * 1.048_576 / elapsed.as_secs_f64())
            })
        };
        let cells: Vec<String> = peers.iter().map(rate).chain([local.to_owned(), afs.to_owned()]).collect();
        out.push_str(&row(name, &cells));
    }
    out
}

/// Formats the table of visits with and without prefetching.
fn visits(plan: &PublishedPlan, samples: &PublishedSamples, rtt: Duration) -> String {
    let peers = plan.visit_peers();
    let mut out = format!(
        "\nThe {FILES} files of {FILE_PIECES} KiB of one directory, opened, read and closed one after the other for the first time, \
         milliseconds; the listing before it not counted:\n\n"
    );
    let columns: Vec<String> =
        names(&peers).into_iter().chain(["taken off".to_owned(), "source: taken off".to_owned()]).collect();
    out.push_str(&header("calls", &columns));
    let command_line: [(&str, VisitTime, &str); 2] = [
        ("open, on average", |visit| visit.opens / FILES as u32, SOURCE_REDUCTION),
        ("all", |visit| visit.total, "–"),
    ];
    for (name, part, source) in command_line {
        let elapsed = |peer: PublishedPeer| {
            let matching = samples.visits.iter().filter(|it| it.rtt == rtt && it.peer == peer);
            median(matching.map(part))
        };
        let reduction = elapsed(PublishedPeer::Wirefs)
            .zip(elapsed(PublishedPeer::NoPrefetch).filter(|without| !without.is_zero()));
        let reduction = reduction.map_or("–".to_owned(), |(with, without)| {
            format!("{:.0} %", (1.0 - with.as_secs_f64() / without.as_secs_f64()) * 100.0)
        });
        let cells = peers.iter().map(|peer| ms(elapsed(*peer)));
        let cells: Vec<String> = cells.chain([reduction, source.to_owned()]).collect();
        out.push_str(&row(name, &cells));
    }
    out
}
