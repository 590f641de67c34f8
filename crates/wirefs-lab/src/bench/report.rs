//! Figures for people, as Markdown, and for programs, as JSON.

mod cell;
mod page;

pub use page::{Markers, Page, Section};

use std::time::Duration;

use super::Plan;
use super::peer::Peer;
use super::samples::{Outcome, Samples, Series};
use crate::control::quoted;
use crate::workload::{Bulk, Scale, Step, Workload};
use cell::{Against, BulkAgainst, cell, count};

/// The figures as tables, a section for each length of wire; `conditions` is what one must know to read them.
pub fn to_markdown(plan: &Plan, samples: &Samples, conditions: &str) -> Vec<Section> {
    let section = |rtt: &Duration| Section {
        heading: wire(plan, *rtt),
        text: format!("{conditions}\n\n{}", tables(plan, samples, *rtt)),
    };
    plan.rtts.iter().map(section).collect()
}

fn tables(plan: &Plan, samples: &Samples, rtt: Duration) -> String {
    let mut out = String::new();
    let shown: Vec<Peer> = Peer::ALL.into_iter().filter(|peer| plan.peers.contains(peer)).collect();
    out.push_str(&header(&shown, "work"));
    for (workload, step) in measured(plan, samples, rtt) {
        let series = |peer| Series { rtt, workload, step, peer };
        let local = elapsed(samples, &series(Peer::Local));
        let bare = elapsed(samples, &series(Peer::Bare));
        let is_transfer = |bulk: &Bulk| match bulk {
            Bulk::Down | Bulk::Up => true,
            Bulk::Tree => false,
        };
        let bulk = step.bulk.filter(is_transfer).map(|_| BulkAgainst { bytes: plan.scale.bulk_bytes, bare });
        let against = Against { rtt, local, bulk };
        let cells = shown.iter().map(|peer| cell(samples.median(&series(*peer)), *peer, &against));
        out.push_str(&row(label(workload, step, &plan.scale), cells));
    }
    out.push_str("\nOn the wire, frames and bytes of both directions:\n\n");
    let remote: Vec<Peer> = shown.into_iter().filter(|peer| *peer != Peer::Local).collect();
    out.push_str(&header(&remote, "work"));
    for (workload, step) in measured(plan, samples, rtt) {
        let cells =
            remote.iter().map(|peer| count(samples.median(&Series { rtt, workload, step, peer: *peer })));
        out.push_str(&row(label(workload, step, &plan.scale), cells));
    }
    out
}

/// The steps that have figures, in the order of the plan.
fn measured<'a>(
    plan: &'a Plan,
    samples: &'a Samples,
    rtt: Duration,
) -> impl Iterator<Item = (&'static Workload, &'static Step)> + 'a {
    let steps =
        plan.workloads.iter().flat_map(|workload| workload.steps.iter().map(move |step| (*workload, step)));
    steps.filter(move |(workload, step)| {
        plan.peers.iter().any(|peer| {
            let series = Series { rtt, workload, step, peer: *peer };
            !samples.outcomes(&series).is_empty()
        })
    })
}

fn wire(plan: &Plan, rtt: Duration) -> String {
    let lane = &plan.profile.a_to_b;
    let mut words = vec![format!("RTT {} ms", rtt.as_secs_f64() * 1e3)];
    words.extend(lane.rate_bits.map(|bits| format!("{} Mbit/s", bits as f64 / 1e6)));
    if lane.loss.value() > 0.0 {
        words.push(format!("{} % loss", lane.loss.value() * 100.0));
    }
    if words.len() == 1 && rtt.is_zero() {
        words.push("plain veth pair".to_owned());
    }
    words.join(", ")
}

fn label(workload: &Workload, step: &Step, scale: &Scale) -> String {
    let about = (workload.about)(scale);
    if step.name.is_empty() { about } else { format!("{about}, {}", step.name) }
}

fn header(peers: &[Peer], first: &str) -> String {
    let names: Vec<&str> = peers.iter().map(|peer| peer.name()).collect();
    format!("| {first} | {} |\n|---{}|\n", names.join(" | "), "|---".repeat(names.len()))
}

fn row(first: String, cells: impl Iterator<Item = String>) -> String {
    format!("| {first} | {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

fn elapsed(samples: &Samples, series: &Series) -> Option<Duration> {
    match samples.median(series) {
        Some(Outcome::Done(sample)) => Some(sample.elapsed),
        Some(Outcome::Stopped(_) | Outcome::Failed(_)) | None => None,
    }
}

/// Every single outcome as a JSON list of objects, one for each run of each step.
pub fn to_json(samples: &Samples) -> String {
    let objects =
        samples.rows().flat_map(|(series, outcomes)| outcomes.iter().map(|outcome| object(series, outcome)));
    format!("[{}]", objects.collect::<Vec<_>>().join(",\n"))
}

fn object(series: &Series, outcome: &Outcome) -> String {
    let bulk = series.step.bulk.map_or("null", |bulk| match bulk {
        Bulk::Down => "\"down\"",
        Bulk::Up => "\"up\"",
        Bulk::Tree => "\"tree\"",
    });
    let of = format!(
        "\"rtt_ms\":{},\"workload\":{},\"step\":{},\"peer\":{},\"bulk\":{bulk}",
        series.rtt.as_secs_f64() * 1e3,
        quoted(series.workload.name),
        quoted(series.step.name),
        quoted(series.peer.name()),
    );
    match outcome {
        Outcome::Done(sample) => format!(
            "{{{of},\"seconds\":{},\"frames\":{},\"bytes\":{}}}",
            sample.elapsed.as_secs_f64(),
            sample.frames,
            sample.bytes
        ),
        Outcome::Stopped(limit) => format!("{{{of},\"stopped_after_seconds\":{}}}", limit.as_secs_f64()),
        Outcome::Failed(said) => format!("{{{of},\"failed\":{}}}", quoted(said)),
    }
}

#[cfg(test)]
mod tests;
