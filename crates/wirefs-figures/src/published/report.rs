//! The tables and pictures, beside what the sources published.

mod by_size;
mod by_stage;

use std::time::Duration;

use super::figure::{Figure, Series};
use super::{Crash, Peer, Plan, Samples};
use wirefs_lab::bench::Section;

/// The tables as sections of a page; `conditions` is what one must know to read them.
pub fn to_sections(plan: &Plan, samples: &Samples, conditions: &str) -> Vec<Section> {
    let mut sections = vec![
        Section {
            heading: format!(
                "A server that is killed while {} in pieces of 1 KiB are written",
                size(plan.killed)
            ),
            text: format!("{conditions}\n\n{}", by_stage::killed(plan, samples)),
        },
        Section {
            heading: "Batched against written through".to_owned(),
            text: format!("{conditions}\n\n{}", by_stage::batches(plan, samples)),
        },
    ];
    sections.extend(plan.rtts.iter().map(|rtt| Section {
        heading: format!("Open, read, write and close by size, RTT {} ms", rtt.as_millis()),
        text: format!("{conditions}\n\n{}", by_size::tables(plan, samples, *rtt)),
    }));
    sections
}

/// The pictures: the name of each file, and what is in it.
pub fn figures(plan: &Plan, samples: &Samples) -> Vec<(String, String)> {
    let series = |peers: Vec<Peer>, sizes: &[usize], took: &dyn Fn(Peer, usize) -> Option<Duration>| {
        let points = |peer: Peer| -> Vec<(f64, f64)> {
            let point = |pieces: &usize| Some((mib(*pieces), took(peer, *pieces)?.as_secs_f64() * 1e3));
            sizes.iter().filter_map(point).collect()
        };
        let line = |peer: Peer| Series { name: peer.name().to_owned(), points: points(peer) };
        peers.into_iter().map(line).collect::<Vec<Series>>()
    };
    let wrote = |peer, pieces| by_stage::median_of(samples, peer, pieces, Crash::None);
    let mut all = vec![(
        "batches.svg".to_owned(),
        Figure {
            title: "Pieces of 1 KiB, fsync and close, milliseconds".to_owned(),
            across: "MiB",
            series: series(plan.batch_peers(), &plan.batches, &wrote),
        },
    )];
    for rtt in &plan.rtts {
        for (name, call) in by_size::SHOWN {
            let took = |peer, pieces| by_size::median_of(samples, *rtt, peer, pieces, call);
            let title = format!("{name}, RTT {} ms, milliseconds", rtt.as_millis());
            let file = format!("{}-{}ms.svg", name.replace(' ', "-"), rtt.as_millis());
            let series = series(plan.access_peers(), &plan.sizes, &took);
            all.push((file, Figure { title, across: "MiB", series }));
        }
    }
    all.into_iter().map(|(file, figure)| (file, figure.to_svg())).collect()
}

/// The median; of an even count the lower one of the two, which was measured.
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

fn names(peers: &[Peer]) -> Vec<String> {
    peers.iter().map(|peer| peer.name().to_owned()).collect()
}

#[cfg(test)]
mod tests;
