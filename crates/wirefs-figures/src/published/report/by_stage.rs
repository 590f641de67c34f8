//! SNFS's table and its second figure.

use std::time::Duration;

use super::{header, median, ms, names, row, size};
use crate::published::{Crash, Peer, Plan, Samples, Writing};

/// SNFS's table: no crash, a crash during the commit, during the writes; milliseconds.
const SNFS_MS: [f64; 3] = [5319.79, 11736.22, 8590.68];
/// How many times the time without a crash it may take with one, a restart not counted.
const ASKED: [&str; 2] = ["≤ 1.1", "≤ 1.3"];

fn those(samples: &Samples, peer: Peer, pieces: usize, crash: Crash) -> impl Iterator<Item = &Writing> {
    let is_one = move |it: &&Writing| it.peer == peer && it.pieces == pieces && it.crash == crash;
    samples.writings.iter().filter(is_one)
}

/// How long it took.
pub(super) fn median_of(samples: &Samples, peer: Peer, pieces: usize, crash: Crash) -> Option<Duration> {
    median(those(samples, peer, pieces, crash).map(|it| it.took))
}

/// The table of crashes, and what they had sent again.
pub(super) fn killed(plan: &Plan, samples: &Samples) -> String {
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
        let none = median_of(samples, peer, plan.killed, Crash::None);
        let mut cells = vec![ms(none)];
        for crash in [Crash::Commit, Crash::Writes] {
            let beyond =
                median(those(samples, peer, plan.killed, crash).map(|it| it.took.saturating_sub(it.restart)));
            cells.push(ms(median_of(samples, peer, plan.killed, crash)));
            cells.push(ms(median(those(samples, peer, plan.killed, crash).map(|it| it.restart))));
            cells.push(ratio(beyond, none));
        }
        out.push_str(&row(peer.name(), &cells));
    }
    let [none, commit, writes] = SNFS_MS;
    let of = |crash: f64| [format!("{crash:.1}"), "with it".to_owned(), format!("{:.2}", crash / none)];
    let cells: Vec<String> = [format!("{none:.1}")].into_iter().chain(of(commit)).chain(of(writes)).collect();
    out.push_str(&row("source: SNFS", &cells));
    let [commit, writes] = ASKED.map(|most| ["–".to_owned(), "–".to_owned(), most.to_owned()]);
    let cells: Vec<String> = ["–".to_owned()].into_iter().chain(commit).chain(writes).collect();
    out.push_str(&row("asked", &cells));
    out.push_str(&sent(plan, samples));
    out
}

/// What the client sent in all, in MiB.
fn sent(plan: &Plan, samples: &Samples) -> String {
    let mut out = String::from("\nMiB that the client sent, headers included:\n\n");
    out.push_str(&header("by", &Crash::ALL.map(|crash| crash.name().to_owned())));
    for peer in plan.killed_peers().into_iter().filter(|peer| peer.outlives_servers()) {
        let cells = Crash::ALL.map(|crash| {
            let mut bytes: Vec<u64> =
                those(samples, peer, plan.killed, crash).map(|it| it.sent_bytes).collect();
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

/// The second figure's table.
pub(super) fn batches(plan: &Plan, samples: &Samples) -> String {
    let peers = plan.batch_peers();
    let mut out = String::from("Milliseconds; *strict* writes through:\n\n");
    let columns: Vec<String> =
        names(&peers).into_iter().chain(["written through / batched".to_owned()]).collect();
    out.push_str(&header("file", &columns));
    for &pieces in &plan.batches {
        let took = |peer: Peer| median_of(samples, peer, pieces, Crash::None);
        let cells = peers.iter().map(|peer| ms(took(*peer)));
        let cells: Vec<String> = cells.chain([ratio(took(Peer::Strict), took(Peer::Wirefs))]).collect();
        out.push_str(&row(&size(pieces), &cells));
    }
    out.push_str("\n![batched against written through](figures/batches.svg)\n");
    out
}
