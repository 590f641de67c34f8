//! The tables, with the figures of the source.

use std::time::Duration;

use super::{FetchPeer, FetchPlan, FetchSample, FetchTimes, SIZES};
use wirefs_lab::bench::PageSection;

/// The source's averages, in milliseconds: NFS, PFS.
const SOURCE_AVERAGES: [(&str, f64, f64); 3] =
    [("open", 2.4, 1.5), ("read of 1 K", 10.0, 6.0), ("close", 0.052, 0.03)];
/// By how many milliseconds the source's PFS was faster than NFS, by file size, without load.
const SOURCE_GAINS_IDLE: [&str; 5] = ["30 to 40", "–", "–", "–", "–"];
/// The same, with load.
const SOURCE_GAINS_LOADED: [&str; 5] = ["30 to 50", "100 to 200", "some 200", "–", "–"];

/// Formats the tables as a section of a page, below its `conditions`.
pub fn to_section(plan: &FetchPlan, samples: &[FetchSample], conditions: &str) -> PageSection {
    let heading = format!("Fetching a file over cards of {} Mbit/s", plan.rate_bits / 1_000_000);
    let loads: String = plan.loads.iter().map(|load| table(plan, samples, *load)).collect();
    PageSection { heading, text: format!("{conditions}\n\n{loads}{}", averages(plan, samples)) }
}

fn table(plan: &FetchPlan, samples: &[FetchSample], load: u64) -> String {
    let mut out = format!("{load} % load on each card, milliseconds:\n\n| file |");
    columns(plan).for_each(|peer| out.push_str(&format!(" {} |", peer.name())));
    out.push_str(" sshfs − two cards | source: NFS − PFS |\n|---|");
    out.push_str(&"---|".repeat(columns(plan).count() + 2));
    let gains = if load == 0 { SOURCE_GAINS_IDLE } else { SOURCE_GAINS_LOADED };
    for (size, ((name, _), source)) in SIZES.iter().zip(gains).enumerate().take(plan.sizes) {
        let elapsed = |peer: FetchPeer| {
            let of =
                |sample: &&FetchSample| sample.load == load && sample.size == size && sample.peer == peer;
            median(samples.iter().filter(of).map(|sample| sample.fetch.total()).collect())
        };
        let cells = columns(plan).map(|peer| elapsed(peer).map_or_else(|| empty_cell(plan, peer), ms));
        let gain = elapsed(FetchPeer::Sshfs).zip(elapsed(FetchPeer::EtherTwoCards));
        let gain = gain.map_or("–".to_owned(), |(sshfs, both)| {
            format!("{:.1}", (sshfs.as_secs_f64() - both.as_secs_f64()) * 1e3)
        });
        let cells: Vec<String> = cells.chain([gain, source.to_owned()]).collect();
        out.push_str(&format!("\n| {name} | {} |", cells.join(" | ")));
    }
    out.push_str("\n\n");
    out
}

/// Formats the average time per call, over all fetches without load.
fn averages(plan: &FetchPlan, samples: &[FetchSample]) -> String {
    let mut out = String::from("Calls on average, 0 % load, milliseconds:\n\n| call |");
    columns(plan).for_each(|peer| out.push_str(&format!(" {} |", peer.name())));
    out.push_str(" source: NFS | source: PFS |\n|---|");
    out.push_str(&"---|".repeat(columns(plan).count() + 2));
    for (call, nfs, pfs) in SOURCE_AVERAGES {
        let average = |peer: FetchPeer| {
            // Only reads are measured for NFS.
            let has_call = is_read(call) || peer != FetchPeer::Nfs;
            let of = |sample: &&FetchSample| sample.load == 0 && sample.peer == peer && has_call;
            let fetches: Vec<FetchTimes> = samples.iter().filter(of).map(|sample| sample.fetch).collect();
            let all: Duration = fetches.iter().map(|fetch| time_of(fetch, call)).sum();
            let count: u32 = fetches.iter().map(|fetch| if is_read(call) { fetch.reads } else { 1 }).sum();
            match count {
                0 => empty_cell(plan, peer),
                count => format!("{:.3}", (all / count).as_secs_f64() * 1e3),
            }
        };
        let cells: Vec<String> = columns(plan).map(average).collect();
        out.push_str(&format!("\n| {call} | {} | {nfs} | {pfs} |", cells.join(" | ")));
    }
    out.push('\n');
    out
}

/// Returns the peers that have a column, in the order of reports.
fn columns(plan: &FetchPlan) -> impl Iterator<Item = FetchPeer> {
    FetchPeer::ALL.into_iter().filter(|peer| plan.peers.contains(peer) || plan.missing.contains(peer))
}

/// Returns the text of a cell without a measurement.
fn empty_cell(plan: &FetchPlan, peer: FetchPeer) -> String {
    if plan.missing.contains(&peer) { "not installed" } else { "–" }.to_owned()
}

fn is_read(call: &str) -> bool {
    call.starts_with("read")
}

fn time_of(fetch: &FetchTimes, call: &str) -> Duration {
    match call {
        "open" => fetch.open,
        "close" => fetch.close,
        _ => fetch.read,
    }
}

/// Returns the median; for an even count the lower of the two middle values.
fn median(mut values: Vec<Duration>) -> Option<Duration> {
    values.sort();
    let at = values.len().checked_sub(1)? / 2;
    values.get(at).copied()
}

fn ms(duration: Duration) -> String {
    format!("{:.1}", duration.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests;
