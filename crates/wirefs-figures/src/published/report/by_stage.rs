//! The tables of SNFS's evaluation: crashes, and batches.

use std::time::Duration;

use super::{header, median, ms, names, row, size};
use crate::published::{BatchSample, CrashPoint, PublishedPeer, PublishedPlan, PublishedSamples};

/// SNFS's times in milliseconds: no crash, a crash during the commit, a crash during the writes.
const SNFS_MS: [f64; 3] = [5319.79, 11736.22, 8590.68];
/// The required limits, as a multiple of the time without a crash, without the server's restart.
const REQUIRED_LIMITS: [&str; 2] = ["≤ 1.1", "≤ 1.3"];

fn matching(
    samples: &PublishedSamples,
    peer: PublishedPeer,
    pieces: usize,
    crash: CrashPoint,
) -> impl Iterator<Item = &BatchSample> {
    let is_one = move |it: &&BatchSample| it.peer == peer && it.pieces == pieces && it.crash == crash;
    samples.batches.iter().filter(is_one)
}

/// Returns the median time of a batch.
pub(super) fn median_of(
    samples: &PublishedSamples,
    peer: PublishedPeer,
    pieces: usize,
    crash: CrashPoint,
) -> Option<Duration> {
    median(matching(samples, peer, pieces, crash).map(|it| it.elapsed))
}

/// Formats the table of crashes and the table of sent data.
pub(super) fn crashes(plan: &PublishedPlan, samples: &PublishedSamples) -> String {
    let columns = [
        "no crash",
        "crash during commit",
        "its restart",
        "× beyond that",
        "crash during writes",
        "its restart",
        "× beyond that",
    ];
    let mut out =
        String::from("Milliseconds from before the file is made until it is closed, `fsync` included:\n\n");
    out.push_str(&header("by", &columns.map(str::to_owned)));
    for peer in plan.killed_peers() {
        let none = median_of(samples, peer, plan.killed, CrashPoint::Never);
        let mut cells = vec![ms(none)];
        for crash in [CrashPoint::Commit, CrashPoint::Writes] {
            let beyond = median(
                matching(samples, peer, plan.killed, crash).map(|it| it.elapsed.saturating_sub(it.restart)),
            );
            cells.push(ms(median_of(samples, peer, plan.killed, crash)));
            cells.push(ms(median(matching(samples, peer, plan.killed, crash).map(|it| it.restart))));
            cells.push(ratio(beyond, none));
        }
        out.push_str(&row(peer.name(), &cells));
    }
    let [none, commit, writes] = SNFS_MS;
    let of = |crash: f64| [format!("{crash:.1}"), "with it".to_owned(), format!("{:.2}", crash / none)];
    let cells: Vec<String> = [format!("{none:.1}")].into_iter().chain(of(commit)).chain(of(writes)).collect();
    out.push_str(&row("source: SNFS", &cells));
    let [commit, writes] = REQUIRED_LIMITS.map(|most| ["–".to_owned(), "–".to_owned(), most.to_owned()]);
    let cells: Vec<String> = ["–".to_owned()].into_iter().chain(commit).chain(writes).collect();
    out.push_str(&row("asked", &cells));
    out.push_str(&sent(plan, samples));
    out
}

/// Formats the table of the data that the client sent, in MiB.
fn sent(plan: &PublishedPlan, samples: &PublishedSamples) -> String {
    let mut out = String::from("\nMiB that the client sent, headers included:\n\n");
    out.push_str(&header("by", &CrashPoint::ALL.map(|crash| crash.name().to_owned())));
    for peer in plan.killed_peers().into_iter().filter(|peer| peer.outlives_servers()) {
        let cells = CrashPoint::ALL.map(|crash| {
            let mut bytes: Vec<u64> =
                matching(samples, peer, plan.killed, crash).map(|it| it.sent_bytes).collect();
            bytes.sort_unstable();
            let middle = bytes.get(bytes.len().saturating_sub(1) / 2);
            middle.map_or("–".to_owned(), |bytes| format!("{:.2}", *bytes as f64 / f64::from(1 << 20)))
        });
        out.push_str(&row(peer.name(), &cells));
    }
    out
}

fn ratio(one: Option<Duration>, other: Option<Duration>) -> String {
    let both = one.zip(other).filter(|(_, other)| !other.is_zero());
    both.map_or("–".to_owned(), |(one, other)| format!("{:.2}", one.as_secs_f64() / other.as_secs_f64()))
}

/// Formats the table of batches against write-through.
pub(super) fn batches(plan: &PublishedPlan, samples: &PublishedSamples) -> String {
    let peers = plan.batch_peers();
    let mut out = String::from("Milliseconds; *strict* writes through:\n\n");
    let columns: Vec<String> =
        names(&peers).into_iter().chain(["written through / batched".to_owned()]).collect();
    out.push_str(&header("file", &columns));
    for &pieces in &plan.batches {
        let elapsed = |peer: PublishedPeer| median_of(samples, peer, pieces, CrashPoint::Never);
        let cells = peers.iter().map(|peer| ms(elapsed(*peer)));
        let cells: Vec<String> =
            cells.chain([ratio(elapsed(PublishedPeer::Strict), elapsed(PublishedPeer::Wirefs))]).collect();
        out.push_str(&row(&size(pieces), &cells));
    }
    out.push_str("\n![batched against written through](figures/batches.svg)\n");
    out
}
