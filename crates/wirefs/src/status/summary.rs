//! The status in five lines: the connection, unsaved changes, speed, answers from this machine, and trouble.

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::Report;
use super::report::{Journal, Limits};
use super::table::{bytes, lines, span, times};

/// Returns the source and mountpoint, and below them the five lines; more if there is trouble.
pub(super) fn of(report: &Report) -> String {
    let state = if report.unmounted { ": UNMOUNTED, still sends its last changes" } else { "" };
    let rows = [
        ("connection", connection(report)),
        ("saved", saved(report)),
        ("speed", speed(report)),
        ("answered", answered(report)),
        ("trouble", trouble(report)),
    ];
    format!("{} on {}{state}\n{}", report.source, report.mountpoint, lines(&rows))
}

fn connection(report: &Report) -> String {
    let age = span(Duration::from_millis(report.connection_age_ms));
    let state = match (report.connected, report.limits.paused) {
        (true, _) => format!("up for {age}"),
        (false, true) => format!("PAUSED for {age}"),
        (false, false) => format!("NOT CONNECTED for {age}"),
    };
    let rtt =
        report.rtt_us.map(|us| format!(", RTT {}", span(Duration::from_micros(us)))).unwrap_or_default();
    let losses = match report.connections_lost {
        0 => String::new(),
        count => format!(", lost {} so far", times(count)),
    };
    format!("{state}{rtt}{losses}")
}

/// Returns whether the server has all changes, else how many it lacks, and for how long.
fn saved(report: &Report) -> String {
    let unsent = report.journal.as_ref().map_or(0, |journal| journal.unanswered_bytes);
    let unsent = unsent.max(report.unacknowledged_bytes);
    let (changes, held) = report.journal.as_ref().map_or((0, 0), |journal| (journal.changes, journal.bytes));
    match (report.journal.is_some(), changes, unsent) {
        (true, 0, 0) => return "all changes are on the server's disk".to_owned(),
        (false, _, 0) => return "the server has all changes".to_owned(),
        (_, _, _) => {}
    }
    let amount = match changes {
        0 => format!("{} are not at the server yet", bytes(unsent)),
        _ => format!("{changes} changes ({}) are not on the server's disk yet", bytes(held)),
    };
    let after = match (report.connected, unsent, report.rate_out) {
        (false, _, _) => "; they follow once it is connected".to_owned(),
        (true, 1.., Some(rate @ 1..)) => {
            format!("; about {} to send", span(Duration::from_secs(unsent.div_ceil(rate))))
        }
        (true, _, _) => "; `wirefs sync` waits for it".to_owned(),
    };
    format!("{amount}{after}")
}

/// Returns the best rates of late, and the limits.
fn speed(report: &Report) -> String {
    let rate = |rate: Option<u64>, direction: &str| rate.map(|rate| format!("{}/s {direction}", bytes(rate)));
    let rates: Vec<_> =
        [rate(report.rate_in, "in"), rate(report.rate_out, "out")].into_iter().flatten().collect();
    let rates = if rates.is_empty() {
        "not measured yet".to_owned()
    } else {
        format!("up to {} of late", rates.join(", "))
    };
    format!("{rates}{}", limits(&report.limits))
}

fn limits(limits: &Limits) -> String {
    let of = |name: &str, rate: Option<u64>| rate.map(|rate| format!("{name} {}/s", bytes(rate)));
    let set: Vec<String> = [of("up", limits.up), of("down", limits.down)].into_iter().flatten().collect();
    if set.is_empty() { String::new() } else { format!("; limited to {}", set.join(", ")) }
}

/// Returns the share of programs' requests that this machine answered.
fn answered(report: &Report) -> String {
    let part = |hits: u64, misses: u64| (hits * 100).checked_div(hits + misses);
    let cache = &report.cache;
    let parts = [
        part(cache.name_hits, cache.name_misses).map(|percent| format!("{percent} % of names")),
        part(cache.data_hits, cache.data_misses).map(|percent| format!("{percent} % of reads")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match parts.is_empty() {
        true => "nothing was asked for yet".to_owned(),
        false => format!("{} by this machine alone", parts.join(" and ")),
    }
}

/// Returns each trouble with the next step, one a line.
fn trouble(report: &Report) -> String {
    let mut found = Vec::new();
    if !report.connected {
        let wait = match report.deadline_ms {
            Some(ms) => format!("calls fail after {}", span(Duration::from_millis(ms))),
            None => "calls wait until it is connected".to_owned(),
        };
        let why = report.connect_error.as_deref().unwrap_or("the connection was lost");
        found.push(format!("{why}; {wait}"));
    }
    found.extend(lease_trouble(report));
    found.extend(report.journal.iter().flat_map(journal_trouble));
    if let Some(last) = report.conflicts_last.last() {
        found.push(format!(
            "conflicts: {} files were replaced after a conflicting change; compare with the kept versions, last: {last}",
            report.conflicts
        ));
    }
    if found.is_empty() { "none".to_owned() } else { found.join("\n") }
}

fn lease_trouble(report: &Report) -> Option<String> {
    match &report.leases {
        None if report.mode == "lease" && report.connected => {
            Some("the server grants no leases, so each lookup is a request; its output says why".to_owned())
        }
        Some(leases) if !leases.valid && report.connected => {
            Some("the leases are suspended until the server answers".to_owned())
        }
        Some(_) | None => None,
    }
}

fn journal_trouble(journal: &Journal) -> impl Iterator<Item = String> {
    let failed =
        journal.failed.as_ref().map(|why| format!("the journal FAILED, no more changes are recorded: {why}"));
    let kept: u64 = journal.aside.values().sum();
    let dirs = journal.aside.keys().cloned().collect::<Vec<_>>().join(", ");
    let aside = (kept > 0).then(|| {
        format!("{kept} changes were NOT carried out and are in {dirs}; `wirefs quarantine list` shows them")
    });
    let refused = journal.refused_last.as_ref().map(|last| {
        format!(
            "the server REJECTED {} changes that programs were told had succeeded, last: {last}",
            journal.refused
        )
    });
    [failed, aside, refused].into_iter().flatten()
}
