//! The screen of `wirefs top`, as text. No line is wider than the terminal, which would wrap it.

mod fit;

use std::collections::BTreeMap;
use std::time::Duration;

use wirefs_carrier::printable;

use crate::activity::{OperationReport, Sample, Wait, in_words};
use crate::status::{bytes, span};
use fit::{cut, end_of, width, wrapped};

/// The operations and waits that are shown of each mount.
const OPERATIONS_MAX: usize = 8;
const WAITS_MAX: usize = 5;

/// The groups of causes that have a column.
const GROUPS: [(&str, &[&str]); 5] = [
    ("queue", &["queue", "offline"]),
    ("wire", &["wire"]),
    ("server", &["server_queue", "server", "recall", "lock"]),
    ("disk", &["server_disk", "journal_disk", "cache_disk"]),
    ("local", &["local", "processor"]),
];

/// The fewest columns for a path beside other text.
const PATH_COLUMNS_MIN: usize = 12;
/// More calls are counted in thousands, so that they fit their column.
const CALLS_MAX: u64 = 9_999_999;

/// Returns the screen with at most this many columns and rows.
pub(super) fn draw(before: &[Sample], now: &[Sample], passed: Duration, size: (usize, usize)) -> String {
    let mut lines = Vec::new();
    let (columns, rows) = size;
    for sample in now {
        let old = before.iter().find(|old| old.status.mountpoint == sample.status.mountpoint);
        if !lines.is_empty() {
            lines.push(String::new());
        }
        mount(&mut lines, old, sample, passed, columns);
    }
    if now.is_empty() {
        lines.push("nothing is mounted; `wirefs mount SOURCE MOUNTPOINT` mounts a directory".to_owned());
    }
    let lines = lines.into_iter().take(rows.max(1));
    lines.map(|line| cut(&line, columns)).collect::<Vec<_>>().join("\n")
}

fn mount(lines: &mut Vec<String>, old: Option<&Sample>, sample: &Sample, passed: Duration, columns: usize) {
    let (status, activity) = (&sample.status, &sample.activity);
    lines.push(title(&status.source, &status.mountpoint, columns));
    let age = Duration::from_millis(status.connection_age_ms);
    let connection = match (status.connected, status.rtt_us) {
        (true, Some(rtt)) => format!("RTT {}", span(Duration::from_micros(rtt))),
        (true, None) => "connected".to_owned(),
        (false, _) => format!("NOT CONNECTED for {}", span(age)),
    };
    let rate =
        |now: u64, then: u64| (now.saturating_sub(then) as f64 / passed.as_secs_f64().max(1e-3)) as u64;
    let traffic = old.map(|old| &old.status).map_or_else(
        || format!("in {}, out {} so far", bytes(status.bytes_in), bytes(status.bytes_out)),
        |old| {
            format!(
                "in {}/s, out {}/s · {} calls/s",
                bytes(rate(status.bytes_in, old.bytes_in)),
                bytes(rate(status.bytes_out, old.bytes_out)),
                rate(status.calls, old.calls)
            )
        },
    );
    let waiting = format!("{} waiting", status.calls_waiting);
    let parts = std::iter::once(connection.as_str()).chain(traffic.split(" · ")).chain([waiting.as_str()]);
    lines.extend(wrapped(parts, columns));
    let journal = status.journal.as_ref().map_or("no journal".to_owned(), |journal| {
        format!("journal {} changes, {}", journal.changes, bytes(journal.bytes))
    });
    let leases = status.leases.as_ref().map_or("no leases".to_owned(), |leases| {
        format!("leases {} objects, {} recalls", leases.objects, leases.recalls)
    });
    lines.extend(wrapped([journal.as_str(), &leases].into_iter(), columns));
    operations(
        lines,
        old.map(|old| old.activity.operations.as_slice()).unwrap_or_default(),
        &activity.operations,
    );
    let waits = activity.waiting.iter().chain(activity.finished.iter().rev());
    lines.extend(waits.take(WAITS_MAX).map(|it| wait(it, columns)));
}

/// Returns the first line of a mount: its source gives way to the mountpoint.
fn title(source: &str, mountpoint: &str, columns: usize) -> String {
    let (source, mountpoint) = (printable(source.as_bytes()), printable(mountpoint.as_bytes()));
    let mountpoint = end_of(&mountpoint, columns.saturating_sub(" on ".len() + PATH_COLUMNS_MIN));
    let source = end_of(&source, columns.saturating_sub(width(&mountpoint) + " on ".len()));
    format!("{source} on {mountpoint}")
}

/// Adds a table of the operations that took the most time, of late if that is known.
fn operations(lines: &mut Vec<String>, old: &[OperationReport], now: &[OperationReport]) {
    let mut rows: Vec<(u64, u64, BTreeMap<String, u64>, &OperationReport)> = now
        .iter()
        .map(|times| {
            let then = old.iter().find(|then| then.name == times.name).cloned().unwrap_or_default();
            let causes = times.causes_us.iter().map(|(cause, sum)| {
                (cause.clone(), sum.saturating_sub(then.causes_us.get(cause).copied().unwrap_or_default()))
            });
            let took = times.total_us.saturating_sub(then.total_us);
            (took, times.calls.saturating_sub(then.calls), causes.collect(), times)
        })
        .collect();
    rows.sort_by_key(|(took, _, _, times)| std::cmp::Reverse((*took, times.total_us)));
    rows.truncate(OPERATIONS_MAX);
    if rows.is_empty() {
        return;
    }
    let heads: String = GROUPS.iter().map(|(name, _)| format!("{name:>8}")).collect();
    lines.push(format!("  {:<11}{:>7}{:>9}{:>9}{heads}", "operation", "calls", "median", "99 %"));
    for (took, calls, causes, times) in rows {
        let share = |names: &[&str]| {
            let sum: u64 = names.iter().filter_map(|name| causes.get(*name)).sum();
            (sum * 100).checked_div(took).map_or("-".to_owned(), |percent| format!("{percent} %"))
        };
        let shares: String = GROUPS.iter().map(|(_, names)| format!("{:>8}", share(names))).collect();
        let time = |micros| span(Duration::from_micros(micros));
        let calls = if calls > CALLS_MAX { format!("{}k", calls / 1000) } else { calls.to_string() };
        lines.push(format!(
            "  {:<11}{calls:>7}{:>9}{:>9}{shares}",
            times.name,
            time(times.p50_us),
            time(times.p99_us)
        ));
    }
}

/// Returns the line of a wait. The path gives way to the cause.
fn wait(wait: &Wait, columns: usize) -> String {
    let process = if wait.process == 0 { wait.thread } else { wait.process };
    let time = |micros| span(Duration::from_micros(micros));
    let cause =
        wait.causes_us.iter().max_by_key(|(_, micros)| **micros).map_or("-", |(name, _)| in_words(name));
    let when = wait.ended_ago_us.map_or("waits".to_owned(), |ago| format!("{} ago", time(ago)));
    let head = format!("  {} ({process}) {} ", printable(wait.program.as_bytes()), wait.operation);
    let tail = format!(": {when}, {} for {cause}", time(wait.waited_us));
    let path = format!("/{}", printable(wait.path.as_bytes()));
    let room = columns.saturating_sub(width(&head) + width(&tail)).max(PATH_COLUMNS_MIN);
    format!("{head}{}{tail}", end_of(&path, room))
}

#[cfg(test)]
mod tests;
