//! The tables and plots, with the figures of the sources.

mod by_size;
mod by_stage;

use std::time::Duration;

use super::plot::{PlotLine, SizePlot};
use super::{CrashPoint, PublishedPeer, PublishedPlan, PublishedSamples};
use wirefs_lab::bench::PageSection;

/// Formats the tables as sections of a page, each below the `conditions`.
pub fn to_sections(plan: &PublishedPlan, samples: &PublishedSamples, conditions: &str) -> Vec<PageSection> {
    let mut sections = vec![
        PageSection {
            heading: format!(
                "A server that is killed while {} in pieces of 1 KiB are written",
                size(plan.killed)
            ),
            text: format!("{conditions}\n\n{}", by_stage::crashes(plan, samples)),
        },
        PageSection {
            heading: "Batched against written through".to_owned(),
            text: format!("{conditions}\n\n{}", by_stage::batches(plan, samples)),
        },
    ];
    sections.extend(plan.rtts.iter().map(|rtt| PageSection {
        heading: format!("Open, read, write and close by size, RTT {} ms", rtt.as_millis()),
        text: format!("{conditions}\n\n{}", by_size::tables(plan, samples, *rtt)),
    }));
    sections
}

/// Renders the plots; returns the name and the SVG text of each file.
pub fn plots(plan: &PublishedPlan, samples: &PublishedSamples) -> Vec<(String, String)> {
    let lines = |peers: Vec<PublishedPeer>,
                 sizes: &[usize],
                 elapsed: &dyn Fn(PublishedPeer, usize) -> Option<Duration>| {
        let points = |peer: PublishedPeer| -> Vec<(f64, f64)> {
            let point = |pieces: &usize| Some((mib(*pieces), elapsed(peer, *pieces)?.as_secs_f64() * 1e3));
            sizes.iter().filter_map(point).collect()
        };
        let line = |peer: PublishedPeer| PlotLine { name: peer.name().to_owned(), points: points(peer) };
        peers.into_iter().map(line).collect::<Vec<PlotLine>>()
    };
    let wrote = |peer, pieces| by_stage::median_of(samples, peer, pieces, CrashPoint::Never);
    let mut all = vec![(
        "batches.svg".to_owned(),
        SizePlot {
            title: "Pieces of 1 KiB, fsync and close, milliseconds".to_owned(),
            across: "MiB",
            lines: lines(plan.batch_peers(), &plan.batches, &wrote),
        },
    )];
    for rtt in &plan.rtts {
        for (name, call) in by_size::PLOTTED_CALLS {
            let elapsed = |peer, pieces| by_size::median_of(samples, *rtt, peer, pieces, call);
            let title = format!("{name}, RTT {} ms, milliseconds", rtt.as_millis());
            let file = format!("{}-{}ms.svg", name.replace(' ', "-"), rtt.as_millis());
            let lines = lines(plan.access_peers(), &plan.sizes, &elapsed);
            all.push((file, SizePlot { title, across: "MiB", lines }));
        }
    }
    all.into_iter().map(|(file, plot)| (file, plot.to_svg())).collect()
}

/// Returns the median; for an even count the lower of the two middle values.
fn median(values: impl Iterator<Item = Duration>) -> Option<Duration> {
    let mut values: Vec<Duration> = values.collect();
    values.sort();
    let at = values.len().checked_sub(1)? / 2;
    values.get(at).copied()
}

fn ms(duration: Option<Duration>) -> String {
    let Some(duration) = duration else { return "–".to_owned() };
    let ms = duration.as_secs_f64() * 1e3;
    if ms < 10.0 { format!("{ms:.2}") } else { format!("{ms:.1}") }
}

fn mib(pieces: usize) -> f64 {
    pieces as f64 / 1024.0
}

fn size(pieces: usize) -> String {
    if pieces < 1024 { format!("{pieces} KiB") } else { format!("{} MiB", pieces / 1024) }
}

fn header(first: &str, names: &[String]) -> String {
    format!("| {first} | {} |\n|---{}|\n", names.join(" | "), "|---".repeat(names.len()))
}

fn row(first: &str, cells: &[String]) -> String {
    format!("| {first} | {} |\n", cells.join(" | "))
}

fn names(peers: &[PublishedPeer]) -> Vec<String> {
    peers.iter().map(|peer| peer.name().to_owned()).collect()
}

#[cfg(test)]
mod tests;
