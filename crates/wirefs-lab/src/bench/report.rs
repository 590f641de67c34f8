//! Reports as Markdown and as JSON.

mod cell;
mod page;

pub use page::{PageMarkers, PageSection, ReportPage};

use std::time::Duration;

use super::BenchPlan;
use super::peer::BenchPeer;
use super::samples::{BenchSamples, SeriesKey, StepOutcome};
use crate::control::quoted;
use crate::workload::{BareTransfer, Scale, Workload, WorkloadStep};
use cell::{Baseline, TransferBaseline, cell, count};

/// Formats the results as tables, one section per round-trip time, each below the `conditions`.
pub fn to_markdown(plan: &BenchPlan, samples: &BenchSamples, conditions: &str) -> Vec<PageSection> {
    let section = |rtt: &Duration| PageSection {
        heading: network_heading(plan, *rtt),
        text: format!("{conditions}\n\n{}", tables(plan, samples, *rtt)),
    };
    plan.rtts.iter().map(section).collect()
}

fn tables(plan: &BenchPlan, samples: &BenchSamples, rtt: Duration) -> String {
    let mut out = String::new();
    let columns: Vec<BenchPeer> =
        BenchPeer::ALL.into_iter().filter(|peer| plan.peers.contains(peer)).collect();
    out.push_str(&header(&columns, "work"));
    for (workload, step) in measured(plan, samples, rtt) {
        let series = |peer| SeriesKey { rtt, workload, step, peer };
        let local = elapsed(samples, &series(BenchPeer::Local));
        let bare = elapsed(samples, &series(BenchPeer::Bare));
        let is_transfer = |bulk: &BareTransfer| match bulk {
            BareTransfer::Down | BareTransfer::Up => true,
            BareTransfer::Tree => false,
        };
        let bulk =
            step.bulk.filter(is_transfer).map(|_| TransferBaseline { bytes: plan.scale.bulk_bytes, bare });
        let baseline = Baseline { rtt, local, bulk };
        let cells = columns.iter().map(|peer| cell(samples.median(&series(*peer)), *peer, &baseline));
        out.push_str(&row(label(workload, step, &plan.scale), cells));
    }
    out.push_str("\nOn the wire, frames and bytes of both directions:\n\n");
    let remote: Vec<BenchPeer> = columns.into_iter().filter(|peer| *peer != BenchPeer::Local).collect();
    out.push_str(&header(&remote, "work"));
    for (workload, step) in measured(plan, samples, rtt) {
        let cells =
            remote.iter().map(|peer| count(samples.median(&SeriesKey { rtt, workload, step, peer: *peer })));
        out.push_str(&row(label(workload, step, &plan.scale), cells));
    }
    out
}

/// Returns the steps that have outcomes, in the order of the plan.
fn measured<'a>(
    plan: &'a BenchPlan,
    samples: &'a BenchSamples,
    rtt: Duration,
) -> impl Iterator<Item = (&'static Workload, &'static WorkloadStep)> + 'a {
    let steps =
        plan.workloads.iter().flat_map(|workload| workload.steps.iter().map(move |step| (*workload, step)));
    steps.filter(move |(workload, step)| {
        plan.peers.iter().any(|peer| {
            let series = SeriesKey { rtt, workload, step, peer: *peer };
            !samples.outcomes(&series).is_empty()
        })
    })
}

fn network_heading(plan: &BenchPlan, rtt: Duration) -> String {
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

fn label(workload: &Workload, step: &WorkloadStep, scale: &Scale) -> String {
    let about = (workload.about)(scale);
    if step.name.is_empty() { about } else { format!("{about}, {}", step.name) }
}

fn header(peers: &[BenchPeer], first: &str) -> String {
    let names: Vec<&str> = peers.iter().map(|peer| peer.name()).collect();
    format!("| {first} | {} |\n|---{}|\n", names.join(" | "), "|---".repeat(names.len()))
}

fn row(first: String, cells: impl Iterator<Item = String>) -> String {
    format!("| {first} | {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

fn elapsed(samples: &BenchSamples, series: &SeriesKey) -> Option<Duration> {
    match samples.median(series) {
        Some(StepOutcome::Done(sample)) => Some(sample.elapsed),
        Some(StepOutcome::Stopped(_) | StepOutcome::Failed(_)) | None => None,
    }
}

/// Formats every outcome as a JSON list of objects, one for each run of each step.
pub fn to_json(samples: &BenchSamples) -> String {
    let objects =
        samples.rows().flat_map(|(series, outcomes)| outcomes.iter().map(|outcome| object(series, outcome)));
    format!("[{}]", objects.collect::<Vec<_>>().join(",\n"))
}

fn object(series: &SeriesKey, outcome: &StepOutcome) -> String {
    let bulk = series.step.bulk.map_or("null", |bulk| match bulk {
        BareTransfer::Down => "\"down\"",
        BareTransfer::Up => "\"up\"",
        BareTransfer::Tree => "\"tree\"",
    });
    let of = format!(
        "\"rtt_ms\":{},\"workload\":{},\"step\":{},\"peer\":{},\"bulk\":{bulk}",
        series.rtt.as_secs_f64() * 1e3,
        quoted(series.workload.name),
        quoted(series.step.name),
        quoted(series.peer.name()),
    );
    match outcome {
        StepOutcome::Done(sample) => format!(
            "{{{of},\"seconds\":{},\"frames\":{},\"bytes\":{}}}",
            sample.elapsed.as_secs_f64(),
            sample.frames,
            sample.bytes
        ),
        StepOutcome::Stopped(limit) => format!("{{{of},\"stopped_after_seconds\":{}}}", limit.as_secs_f64()),
        StepOutcome::Failed(message) => format!("{{{of},\"failed\":{}}}", quoted(message)),
    }
}

#[cfg(test)]
mod tests;
