//! One cell of a table.

use std::time::Duration;

use super::super::peer::BenchPeer;
use super::super::samples::StepOutcome;

/// The values that a cell is compared with.
pub(super) struct Baseline {
    /// The link's round-trip time.
    pub(super) rtt: Duration,
    /// The time on the local file system.
    pub(super) local: Option<Duration>,
    /// The transfer baseline, for steps that are transfers.
    pub(super) bulk: Option<TransferBaseline>,
}

/// The baseline of a transfer.
pub(super) struct TransferBaseline {
    /// The number of transferred bytes.
    pub(super) bytes: u64,
    /// The time of the bare transfer.
    pub(super) bare: Option<Duration>,
}

/// Formats: the time; for a transfer its rate and its percentage of the bare rate, otherwise the round trips beyond the
/// local time; the ratio to the local time. For a bare transfer next to other work: all its round trips.
pub(super) fn cell(outcome: Option<StepOutcome>, peer: BenchPeer, baseline: &Baseline) -> String {
    let elapsed = match outcome {
        None => return "–".to_owned(),
        Some(StepOutcome::Stopped(limit)) => return format!("> {} (stopped)", span(limit)),
        Some(StepOutcome::Failed(_)) => return "failed".to_owned(),
        Some(StepOutcome::Done(sample)) => sample.elapsed,
    };
    let seconds = elapsed.as_secs_f64();
    let mut parts = vec![span(elapsed)];
    if let Some(bulk) = &baseline.bulk {
        parts.push(format!("{:.1} MB/s", bulk.bytes as f64 / 1e6 / seconds));
        let bare = bulk.bare.filter(|_| peer.is_remote_tree());
        parts.extend(bare.map(|bare| format!("{:.0} % of bare", 100.0 * bare.as_secs_f64() / seconds)));
    }
    if peer == BenchPeer::Bare && baseline.bulk.is_none() && !baseline.rtt.is_zero() {
        parts.push(format!("{} RTT", short(seconds / baseline.rtt.as_secs_f64())));
    }
    if let Some(local) = baseline.local.filter(|_| peer.is_remote_tree()) {
        if baseline.bulk.is_none() && !baseline.rtt.is_zero() {
            let overhead = elapsed.saturating_sub(local);
            parts.push(format!("{} RTT", short(overhead.as_secs_f64() / baseline.rtt.as_secs_f64())));
        }
        parts.push(format!("× {}", short(seconds / local.as_secs_f64().max(1e-9))));
    }
    parts.join(" · ")
}

/// Formats frames and bytes.
pub(super) fn count(outcome: Option<StepOutcome>) -> String {
    match outcome {
        Some(StepOutcome::Done(sample)) => format!("{} · {}", sample.frames, size(sample.bytes)),
        Some(StepOutcome::Stopped(_) | StepOutcome::Failed(_)) | None => "–".to_owned(),
    }
}

fn span(span: Duration) -> String {
    let seconds = span.as_secs_f64();
    if seconds < 1.0 { format!("{} ms", short(seconds * 1e3)) } else { format!("{} s", short(seconds)) }
}

/// Formats a number with two decimals if it is small, none if it is large.
fn short(number: f64) -> String {
    match number {
        n if n < 10.0 => format!("{n:.2}"),
        n if n < 100.0 => format!("{n:.1}"),
        n => format!("{n:.0}"),
    }
}

fn size(bytes: u64) -> String {
    const KIB: f64 = 1024.0;
    let bytes = bytes as f64;
    if bytes < KIB * KIB {
        format!("{} KiB", short(bytes / KIB))
    } else {
        format!("{} MiB", short(bytes / KIB / KIB))
    }
}
