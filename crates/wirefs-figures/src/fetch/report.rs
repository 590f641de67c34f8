//! The table, beside what the source published.

use std::time::Duration;

use super::{Fetch, Peer, Plan, SIZES, Sample};
use wirefs_lab::bench::Section;

/// What the source says of its averages, in milliseconds: NFS, PFS.
const SOURCE_AVERAGES: [(&str, f64, f64); 3] =
    [("open", 2.4, 1.5), ("read of 1 K", 10.0, 6.0), ("close", 0.052, 0.03)];
/// What the source says that PFS took less than NFS, in milliseconds, by size, on free cards.
const SOURCE_GAINS_FREE: [&str; 5] = ["30 to 40", "–", "–", "–", "–"];
/// The same with load.
const SOURCE_GAINS_LOADED: [&str; 5] = ["30 to 50", "100 to 200", "some 200", "–", "–"];

/// The tables as a section of a page; `conditions` is what one must know to read them.
pub fn to_section(plan: &Plan, samples: &[Sample], conditions: &str) -> Section {
    let heading = format!("Fetching a file over cards of {} Mbit/s", plan.rate_bits / 1_000_000);
    let loads: String = plan.loads.iter().map(|load| table(plan, samples, *load)).collect();
    Section { heading, text: format!("{conditions}\n\n{loads}{}", averages(plan, samples)) }
}

fn table(plan: &Plan, samples: &[Sample], load: u64) -> String {
    let mut out = format!("{load} % load on each card, milliseconds:\n\n| file |");
    shown(plan).for_each(|peer| out.push_str(&format!(" {} |", peer.name())));
    out.push_str(" sshfs − two cards | source: NFS − PFS |\n|---|");
    out.push_str(&"---|".repeat(shown(plan).count() + 2));
    let gains = if load == 0 { SOURCE_GAINS_FREE } else { SOURCE_GAINS_LOADED };
    for (size, ((name, _), source)) in SIZES.iter().zip(gains).enumerate().take(plan.sizes) {
        let took = |peer: Peer| {
            let of = |sample: &&Sample| sample.load == load && sample.size == size && sample.peer == peer;
            median(samples.iter().filter(of).map(|sample| sample.fetch.total()).collect())
        };
        let cells = shown(plan).map(|peer| took(peer).map_or_else(|| nothing(plan, peer), ms));
        let gain = took(Peer::Sshfs).zip(took(Peer::EtherBoth));
        let gain = gain.map_or("–".to_owned(), |(sshfs, both)| {
            format!("{:.1}", (sshfs.as_secs_f64() - both.as_secs_f64()) * 1e3)
        });
        let cells: Vec<String> = cells.chain([gain, source.to_owned()]).collect();
        out.push_str(&format!("\n| {name} | {} |", cells.join(" | ")));
    }
    out.push_str("\n\n");
    out
}

/// What the calls took on average, over all fetches without load.
fn averages(plan: &Plan, samples: &[Sample]) -> String {
    let mut out = String::from("Calls on average, 0 % load, milliseconds:\n\n| call |");
    shown(plan).for_each(|peer| out.push_str(&format!(" {} |", peer.name())));
    out.push_str(" source: NFS | source: PFS |\n|---|");
    out.push_str(&"---|".repeat(shown(plan).count() + 2));
    for (call, nfs, pfs) in SOURCE_AVERAGES {
        let average = |peer: Peer| {
            // What is measured of it is reads.
            let has_call = is_read(call) || peer != Peer::Nfs;
            let of = |sample: &&Sample| sample.load == 0 && sample.peer == peer && has_call;
            let fetches: Vec<Fetch> = samples.iter().filter(of).map(|sample| sample.fetch).collect();
            let all: Duration = fetches.iter().map(|fetch| part(fetch, call)).sum();
            let count: u32 = fetches.iter().map(|fetch| if is_read(call) { fetch.reads } else { 1 }).sum();
            match count {
                0 => nothing(plan, peer),
                count => format!("{:.3}", (all / count).as_secs_f64() * 1e3),
            }
        };
        let cells: Vec<String> = shown(plan).map(average).collect();
        out.push_str(&format!("\n| {call} | {} | {nfs} | {pfs} |", cells.join(" | ")));
    }
    out.push('\n');
    out
}

/// All that have a column, in the order of reports.
fn shown(plan: &Plan) -> impl Iterator<Item = Peer> {
    Peer::ALL.into_iter().filter(|peer| plan.peers.contains(peer) || plan.absent.contains(peer))
}

/// What stands where nothing was measured.
fn nothing(plan: &Plan, peer: Peer) -> String {
    if plan.absent.contains(&peer) { "not installed" } else { "–" }.to_owned()
}

fn is_read(call: &str) -> bool {
    call.starts_with("read")
}

fn part(fetch: &Fetch, call: &str) -> Duration {
    match call {
        "open" => fetch.open,
        "close" => fetch.close,
        _ => fetch.read,
    }
}

/// The median; of an even count the lower one of the two, which was measured.
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
