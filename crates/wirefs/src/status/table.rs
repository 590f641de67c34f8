//! The status as text.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Report;
use super::report::{Cache, Counts, Disk, Journal, Leases, Limits, Prefetch};

/// Returns the status as lines of a name and a value.
pub(super) fn of(report: &Report) -> String {
    let state = if report.unmounted { ": UNMOUNTED, still sends its last changes" } else { "" };
    let head = format!("{} on {}{state}", report.source, report.mountpoint);
    let rows = rows(report).into_iter().map(|(name, value)| format!("  {name:<10} {value}"));
    std::iter::once(head).chain(rows).collect::<Vec<_>>().join("\n")
}

/// Returns whether there is a connection, and since when.
fn connection_state(report: &Report) -> String {
    let age = span(Duration::from_millis(report.connection_age_ms));
    match (report.connected, report.limits.paused) {
        (true, _) => format!("connected for {age}"),
        (false, true) => format!("PAUSED for {age}"),
        (false, false) => format!("NOT CONNECTED for {age}"),
    }
}

/// Returns the rate limits, if there are any.
fn limits(limits: &Limits) -> Option<String> {
    let of = |name: &str, rate: Option<u64>| rate.map(|rate| format!("{name} {}/s", bytes(rate)));
    let set: Vec<String> = [of("up", limits.up), of("down", limits.down)].into_iter().flatten().collect();
    (!set.is_empty()).then(|| set.join(", "))
}

/// Returns the number of connections, if there is more than one.
fn others(report: &Report) -> String {
    match report.connections {
        0 | 1 => String::new(),
        count => format!(" over {count} connections"),
    }
}

fn rows(report: &Report) -> Vec<(&'static str, String)> {
    let state = connection_state(report);
    let losses = match report.connections_lost {
        0 => String::new(),
        count => format!(", connection lost {}", times(count)),
    };
    let key = report.peer.key.as_ref().map(|key| format!("  key {key}")).unwrap_or_default();
    let rtt = report.rtt_us.map_or("not measured yet".to_owned(), |us| span(Duration::from_micros(us)));
    let deadline = match report.deadline_ms {
        Some(ms) => format!("calls wait at most {}", span(Duration::from_millis(ms))),
        None => "calls wait forever".to_owned(),
    };
    let access = if report.read_only { ", read-only" } else { "" };
    let cache = &report.cache;
    let mut rows = vec![
        ("peer", format!("{}{key}", report.peer.address)),
        ("carrier", format!("{}, {state}{}{losses}", report.carrier, others(report))),
        ("RTT", rtt),
        ("mode", format!("{}{access}, {deadline}", report.mode)),
        ("requests", kinds(&report.requests)),
        ("in flight", kinds(&report.in_flight)),
        ("bytes", format!("{} in, {} out{}", bytes(report.bytes_in), bytes(report.bytes_out), rates(report))),
        (
            "cache",
            format!(
                "names {}, data {}; {} names; {}",
                hits(cache.name_hits, cache.name_misses),
                hits(cache.data_hits, cache.data_misses),
                cache.names,
                in_memory(cache)
            ),
        ),
    ];
    rows.splice(6..6, late(report).map(|late| ("late", late)));
    let failed = report.connect_error.as_ref().map(|why| ("failed", why.clone()));
    rows.splice(2..2, failed);
    let paths = report.paths.iter().map(|path| ("path", path.to_string()));
    rows.splice(2..2, paths);
    rows.extend(limits(&report.limits).map(|limits| ("limits", limits)));
    if report.prefetch.asked > 0 {
        rows.push(("prefetched", prefetched(&report.prefetch)));
    }
    if let Some(disk) = &cache.disk {
        rows.push(("on disk", on_disk(disk)));
    }
    if let Some(leases) = leases(report.leases.as_ref(), &report.mode, report.connected) {
        rows.push(("leases", leases));
    }
    if let Some(journal) = &report.journal {
        rows.push(("journal", in_journal(journal)));
    }
    if let Some(last) = report.conflicts_last.last() {
        let count = report.conflicts;
        let text = format!(
            "{count} files were replaced after a conflicting change; the other version was kept, last: {last}"
        );
        rows.push(("conflicts", text));
    }
    if report.unacknowledged_bytes > 0 {
        rows.push((
            "unsent",
            format!("{} not yet acknowledged by the server", bytes(report.unacknowledged_bytes)),
        ));
    }
    if report.calls_waiting > 0 {
        rows.push(("waiting", format!("{} calls of programs", report.calls_waiting)));
    }
    rows.push(("process", report.process.to_string()));
    rows
}

/// Returns the memory in use, and its limit.
fn in_memory(cache: &Cache) -> String {
    let Cache { bytes: data, names_bytes, listings_bytes, packed_bytes, other_bytes, bytes_max, .. } = cache;
    let all = data + names_bytes + listings_bytes + packed_bytes + other_bytes;
    format!(
        "{} of {}: names {}, listings {}, packed {}, other {}, data {}",
        bytes(all),
        bytes(*bytes_max),
        bytes(*names_bytes),
        bytes(*listings_bytes),
        bytes(*packed_bytes),
        bytes(*other_bytes),
        bytes(*data)
    )
}

/// Returns the state of leases, if the mode uses them.
fn leases(leases: Option<&Leases>, mode: &str, connected: bool) -> Option<String> {
    let Some(leases) = leases else {
        let none = "none: the server grants no leases, so each lookup is a request";
        return (mode == "lease").then(|| none.to_owned());
    };
    let state = match (leases.valid, connected) {
        (true, _) => "",
        (false, true) => "SUSPENDED until the server answers: ",
        (false, false) => "SUSPENDED until the server is back: ",
    };
    let recalls = match leases.recalls {
        0 => String::new(),
        count => format!(", recalled {}", times(count)),
    };
    let watch = match leases.watch.as_str() {
        "none" => "; changes by programs on the server are not reported",
        _ => "",
    };
    Some(format!("{state}{} objects, {} names in listings{recalls}{watch}", leases.objects, leases.names))
}

/// Returns the prefetched data, and its use.
fn prefetched(prefetch: &Prefetch) -> String {
    let Prefetch { asked, bytes: came, directories, files, .. } = prefetch;
    let counts = |what: &str, counts: &Counts| {
        format!("{} {what} ({} used, {} wasted)", counts.fetched, counts.used, counts.wasted)
    };
    format!(
        "{asked} requests, {}: {}, {}",
        bytes(*came),
        counts("directories", directories),
        counts("files", files)
    )
}

fn on_disk(disk: &Disk) -> String {
    let taken = match disk.listings_taken {
        0 => String::new(),
        count => format!("; {count} directories known from an earlier mount"),
    };
    let damaged = match disk.damaged {
        0 => String::new(),
        count => format!("; found damaged {}", times(count)),
    };
    let used = hits(disk.hits, disk.misses);
    format!("data {used}; {} of {}{taken}{damaged}", bytes(disk.bytes), bytes(disk.bytes_max))
}

fn in_journal(journal: &Journal) -> String {
    let Journal { changes, unanswered_changes, aside, .. } = journal;
    let held = match (changes, unanswered_changes) {
        (0, _) => "empty: all changes are on the server's disk".to_owned(),
        (_, 0) => format!("{changes} changes ({}) not yet on the server's disk", bytes(journal.bytes)),
        _ => format!(
            "{changes} changes ({}) not yet on the server's disk, {unanswered_changes} ({}) not yet at the server",
            bytes(journal.bytes),
            bytes(journal.unanswered_bytes)
        ),
    };
    let failed = journal.failed.as_ref().map(|why| format!("; FAILED, no more changes are recorded: {why}"));
    let kept: u64 = aside.values().sum();
    let dirs: Vec<&str> = aside.keys().map(String::as_str).collect();
    let aside =
        (kept > 0).then(|| format!("; {kept} changes were NOT carried out and are in {}", dirs.join(", ")));
    let refused = journal.refused_last.as_ref().map(|last| {
        format!(
            "; the server REJECTED {} changes that programs were told had succeeded, last: {last}",
            journal.refused
        )
    });
    format!(
        "{held}{}{}{}",
        failed.unwrap_or_default(),
        aside.unwrap_or_default(),
        refused.unwrap_or_default()
    )
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn rates(report: &Report) -> String {
    let rate =
        |rate: Option<u64>, direction: &str| rate.map(|rate| format!("{} / s {direction}", bytes(rate)));
    let rates: Vec<_> =
        [rate(report.rate_in, "in"), rate(report.rate_out, "out")].into_iter().flatten().collect();
    if rates.is_empty() { String::new() } else { format!("; up to {}", rates.join(", ")) }
}

/// Requests that the server leaves without a reply; `None` if there were none.
fn late(report: &Report) -> Option<String> {
    let late = || {
        let (late, failed) = (kinds(&report.late), report.timed_out);
        format!("{late} without a reply for 8 s; {failed} failed with ETIMEDOUT")
    };
    (!report.late.is_empty() || report.timed_out > 0).then(late)
}

fn kinds(kinds: &BTreeMap<String, u64>) -> String {
    let listed: Vec<_> = kinds
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    if listed.is_empty() { "none".to_owned() } else { listed.join(", ") }
}

fn hits(hits: u64, misses: u64) -> String {
    match hits + misses {
        0 => "not used yet".to_owned(),
        all => format!("{} % of {all} from memory", hits * 100 / all),
    }
}

/// Returns a size with three digits at most.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = "KiB";
    for next in UNITS.iter().skip(1) {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if value < 10.0 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}

/// Returns a duration in a suitable unit.
pub(crate) fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0 if span.as_millis() < 10 => format!("{:.2} ms", span.as_secs_f64() * 1e3),
        0 => format!("{} ms", span.as_millis()),
        1..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_spans_are_short() {
        for (count, text) in
            [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1 << 20, "1.0 MiB"), (300 << 20, "300 MiB")]
        {
            assert_eq!(bytes(count), text);
        }
        for (ms, text) in
            [(0, "0.00 ms"), (85, "85 ms"), (1500, "1 s"), (180_000, "3 min"), (90_000_000, "25 h")]
        {
            assert_eq!(span(Duration::from_millis(ms)), text);
        }
    }

    #[test]
    fn leases_are_shown_if_the_mode_uses_them() {
        assert_eq!(leases(None, "window=1000ms", true), None);
        assert!(leases(None, "lease", true).is_some_and(|text| text.starts_with("none: ")));
        let mut held =
            Leases { objects: 12, names: 30, valid: true, recalls: 0, watch: "directories".to_owned() };
        let text = |held: &Leases, connected| leases(Some(held), "lease", connected).unwrap_or_default();
        assert_eq!(text(&held, true), "12 objects, 30 names in listings");
        held.recalls = 1;
        held.watch = "none".to_owned();
        let expected = "12 objects, 30 names in listings, recalled once; changes by programs on the server are not reported";
        assert_eq!(text(&held, true), expected);
        held.valid = false;
        assert!(text(&held, true).starts_with("SUSPENDED until the server answers: 12 objects"));
        assert!(text(&held, false).starts_with("SUSPENDED until the server is back: 12 objects"));
    }

    #[test]
    fn journal_is_shown() {
        let mut journal = Journal {
            alone: true,
            changes: 0,
            bytes: 0,
            unanswered_changes: 0,
            unanswered_bytes: 0,
            syncs: 0,
            failed: None,
            aside: BTreeMap::new(),
            refused: 0,
            refused_last: None,
            lent: 0,
            locks: 0,
        };
        assert!(in_journal(&journal).starts_with("empty"));
        (journal.changes, journal.bytes) = (7, 2048);
        assert_eq!(in_journal(&journal), "7 changes (2.0 KiB) not yet on the server's disk");
        (journal.unanswered_changes, journal.unanswered_bytes) = (2, 100);
        assert!(in_journal(&journal).ends_with("disk, 2 (100 B) not yet at the server"));
        journal.failed = Some("no space".to_owned());
        journal.aside.insert("/dir".to_owned(), 3);
        let text = in_journal(&journal);
        assert!(text.ends_with(
            "; FAILED, no more changes are recorded: no space; 3 changes were NOT carried out and are in /dir"
        ));
        (journal.refused, journal.refused_last) = (2, Some("Put of d/f: no space left on device".to_owned()));
        let text = in_journal(&journal);
        assert!(text.ends_with(
            "; the server REJECTED 2 changes that programs were told had succeeded, last: Put of d/f: no space left on device"
        ));
    }

    #[test]
    fn ratio_of_zero_is_empty() {
        assert_eq!(hits(0, 0), "not used yet");
        assert_eq!(hits(3, 1), "75 % of 4 from memory");
        assert_eq!(kinds(&BTreeMap::new()), "none");
    }
}
