//! One figure of a table.

use std::time::Duration;

use super::super::peer::Peer;
use super::super::samples::Outcome;

/// What a figure is compared with.
pub(super) struct Against {
    /// The link's round-trip time.
    pub(super) rtt: Duration,
    /// The same work on the local file system.
    pub(super) local: Option<Duration>,
    /// For the steps that are a transfer.
    pub(super) bulk: Option<BulkAgainst>,
}

/// What a transfer is compared with.
pub(super) struct BulkAgainst {
    /// The bytes that were transferred.
    pub(super) bytes: u64,
    /// The bare transfer of as many.
    pub(super) bare: Option<Duration>,
}

/// Seconds; round trips beyond the local time, or for a transfer its rate and part of the bare one's; ratio to the
/// local time. Of a bare transfer that stands beside other work, all round trips.
pub(super) fn cell(outcome: Option<Outcome>, peer: Peer, against: &Against) -> String {
    let elapsed = match outcome {
        None => return "–".to_owned(),
        Some(Outcome::Stopped(limit)) => return format!("> {} (stopped)", span(limit)),
        Some(Outcome::Failed(_)) => return "failed".to_owned(),
        Some(Outcome::Done(sample)) => sample.elapsed,
    };
    let seconds = elapsed.as_secs_f64();
    let mut parts = vec![span(elapsed)];
    if let Some(bulk) = &against.bulk {
        parts.push(format!("{:.1} MB/s", bulk.bytes as f64 / 1e6 / seconds));
        let bare = bulk.bare.filter(|_| peer.is_remote_tree());
        parts.extend(bare.map(|bare| format!("{:.0} % of bare", 100.0 * bare.as_secs_f64() / seconds)));
    }
    if peer == Peer::Bare && against.bulk.is_none() && !against.rtt.is_zero() {
        parts.push(format!("{} RTT", short(seconds / against.rtt.as_secs_f64())));
    }
    if let Some(local) = against.local.filter(|_| peer.is_remote_tree()) {
        if against.bulk.is_none() && !against.rtt.is_zero() {
            let beyond = elapsed.saturating_sub(local);
            parts.push(format!("{} RTT", short(beyond.as_secs_f64() / against.rtt.as_secs_f64())));
        }
        parts.push(format!("× {}", short(seconds / local.as_secs_f64().max(1e-9))));
    }
    parts.join(" · ")
}

/// Frames and bytes.
pub(super) fn count(outcome: Option<Outcome>) -> String {
    match outcome {
        Some(Outcome::Done(sample)) => format!("{} · {}", sample.frames, size(sample.bytes)),
        Some(Outcome::Stopped(_) | Outcome::Failed(_)) | None => "–".to_owned(),
    }
}

fn span(span: Duration) -> String {
    let seconds = span.as_secs_f64();
    if seconds < 1.0 { format!("{} ms", short(seconds * 1e3)) } else { format!("{} s", short(seconds)) }
}

/// Two digits behind the point when small, none when large.
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
