//! All counters of a mount as text.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Report;
use super::report::{Cache, Compression, Counts, Disk, Journal, Leases, Prefetch};

/// Returns all counters as lines of a name and a value.
pub(super) fn of(report: &Report) -> String {
    lines(&rows(report))
}

/// Returns rows as lines. Further lines of a value are below its first one.
pub(super) fn lines(rows: &[(&str, String)]) -> String {
    let line = |(name, value): &(&str, String)| {
        format!("  {name:<10} {}", value.replace('\n', &format!("\n  {:10} ", "")))
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns what compression saved.
fn compressed(saved: &Compression) -> String {
    let direction = |plain, packed, name| format!("{} {name} as {}", bytes(plain), bytes(packed));
    let directions = [(saved.in_plain, saved.in_packed, "in"), (saved.out_plain, saved.out_packed, "out")];
    let used = directions.iter().filter(|(plain, ..)| *plain > 0);
    let used: Vec<String> = used.map(|(plain, packed, name)| direction(*plain, *packed, name)).collect();
    if used.is_empty() {
        "nothing: the line is fast, or the data do not shrink".to_owned()
    } else {
        used.join(", ")
    }
}

fn rows(report: &Report) -> Vec<(&'static str, String)> {
    let key = report.peer.key.as_ref().map(|key| format!("  key {key}")).unwrap_or_default();
    let deadline = match report.deadline_ms {
        Some(ms) => format!("calls wait at most {}", span(Duration::from_millis(ms))),
        None => "calls wait forever".to_owned(),
    };
    let access = if report.read_only { ", read-only" } else { "" };
    let cache = &report.cache;
    let connections = match report.connections {
        0 | 1 => String::new(),
        count => format!(", {count} connections"),
    };
    let mut rows = vec![
        ("peer", format!("{}{key}", report.peer.address)),
        ("carrier", format!("{}{connections}", report.carrier)),
        ("mode", format!("{}{access}, {deadline}", report.mode)),
        ("requests", kinds(&report.requests)),
        ("in flight", kinds(&report.in_flight)),
        ("bytes", format!("{} in, {} out", bytes(report.bytes_in), bytes(report.bytes_out))),
        ("compressed", compressed(&report.compression)),
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
    rows.splice(5..5, late(report).map(|late| ("late", late)));
    let paths = report.paths.iter().map(|path| ("path", path.to_string()));
    rows.splice(2..2, paths);
    if report.prefetch.asked > 0 {
        rows.push(("prefetched", prefetched(&report.prefetch)));
    }
    if let Some(disk) = &cache.disk {
        rows.push(("on disk", on_disk(disk)));
    }
    if let Some(leases) = &report.leases {
        rows.push(("leases", held_leases(leases)));
    }
    if let Some(journal) = &report.journal {
        rows.push(("journal", in_journal(journal)));
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

fn held_leases(leases: &Leases) -> String {
    let recalls = match leases.recalls {
        0 => String::new(),
        count => format!(", recalled {}", times(count)),
    };
    let watch = match leases.watch.as_str() {
        "none" => "; changes by programs on the server are not reported",
        _ => "",
    };
    format!("{} objects, {} names in listings{recalls}{watch}", leases.objects, leases.names)
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
    format!(
        "{} changes ({}) not yet on the server's disk, {} ({}) not yet at the server",
        journal.changes,
        bytes(journal.bytes),
        journal.unanswered_changes,
        bytes(journal.unanswered_bytes)
    )
}

pub(super) fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
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
    fn leases_are_counted() {
        let mut held =
            Leases { objects: 12, names: 30, valid: true, recalls: 0, watch: "directories".to_owned() };
        assert_eq!(held_leases(&held), "12 objects, 30 names in listings");
        (held.recalls, held.watch) = (1, "none".to_owned());
        let expected = "12 objects, 30 names in listings, recalled once; changes by programs on the server are not reported";
        assert_eq!(held_leases(&held), expected);
    }

    #[test]
    fn ratio_of_zero_is_empty() {
        assert_eq!(hits(0, 0), "not used yet");
        assert_eq!(hits(3, 1), "75 % of 4 from memory");
        assert_eq!(kinds(&BTreeMap::new()), "none");
    }
}
