use super::*;
use crate::status::report::Leases;
use std::collections::BTreeMap;

/// A mount without trouble, as older versions report it.
fn report() -> Report {
    let cache = serde_json::json!({"name_hits": 3, "name_misses": 1, "data_hits": 0, "data_misses": 0, "names": 4,
        "bytes": 0, "bytes_max": 1, "disk": null});
    let counts = serde_json::json!({"fetched": 0, "used": 0, "wasted": 0});
    serde_json::from_value(serde_json::json!({
        "source": "tls://nas/", "mountpoint": "/mnt", "version": "1", "process": 7,
        "peer": {"address": "nas", "key": null}, "carrier": "tcp+tls", "connected": true,
        "connection_age_ms": 3000, "connections_lost": 0, "mounted_for_ms": 3000, "rtt_us": 85_000,
        "mode": "window=1000ms", "read_only": false, "deadline_ms": 10_000, "calls": 0, "calls_waiting": 0,
        "requests": {}, "in_flight": {}, "bytes_in": 0, "bytes_out": 0, "rate_in": null, "rate_out": null,
        "cache": cache, "prefetch": {"asked": 0, "bytes": 0, "directories": counts, "files": counts, "contents": counts},
        "leases": null, "unacknowledged_bytes": 0, "journal": null
    }))
    .unwrap()
}

fn journal() -> Journal {
    Journal {
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
    }
}

#[test]
fn five_lines_answer_five_questions() {
    assert_eq!(
        of(&report()),
        "tls://nas/ on /mnt\n  connection up for 3 s, RTT 85 ms\n  saved      the server has all changes\n  \
         speed      not measured yet\n  answered   75 % of names by this machine alone\n  trouble    none"
    );
}

#[test]
fn unsaved_changes_are_counted_with_the_time_to_send_them() {
    let mut report = Report { journal: Some(journal()), rate_out: Some(1024), ..report() };
    assert_eq!(saved(&report), "all changes are on the server's disk");
    let held = Journal { changes: 7, bytes: 2048, ..journal() };
    report.journal = Some(held.clone());
    assert_eq!(
        saved(&report),
        "7 changes (2.0 KiB) are not on the server's disk yet; `wirefs sync` waits for it"
    );
    report.journal = Some(Journal { unanswered_changes: 7, unanswered_bytes: 2048, ..held });
    assert!(saved(&report).ends_with("yet; about 2 s to send"));
    report.connected = false;
    assert!(saved(&report).ends_with("yet; they follow once it is connected"));
}

#[test]
fn speed_names_the_limits() {
    let limits = Limits { up: None, down: Some(1), paused: false };
    let report = Report { rate_in: Some(2048), limits, ..report() };
    assert_eq!(speed(&report), "up to 2.0 KiB/s in of late; limited to down 1 B/s");
}

#[test]
fn each_trouble_is_a_line_with_its_next_step() {
    let lost = Report { connected: false, connect_error: Some("no route; try again".to_owned()), ..report() };
    assert_eq!(trouble(&lost), "no route; try again; calls fail after 10 s");
    assert!(of(&lost).contains("NOT CONNECTED for 3 s"));
    let bare = Report { mode: "lease".to_owned(), ..report() };
    assert!(trouble(&bare).starts_with("the server grants no leases"));
    let leases = Leases { objects: 1, names: 1, valid: false, recalls: 0, watch: "none".to_owned() };
    assert_eq!(
        trouble(&Report { leases: Some(leases), ..bare }),
        "the leases are suspended until the server answers"
    );
    let journal = Journal {
        failed: Some("no space".to_owned()),
        aside: BTreeMap::from([("/dir".to_owned(), 3)]),
        refused: 2,
        refused_last: Some("Put of d/f: no space".to_owned()),
        ..journal()
    };
    let text = of(&Report { journal: Some(journal), ..report() });
    assert_eq!(text.lines().count(), 8, "{text}");
    for part in ["FAILED", "3 changes were NOT carried out and are in /dir", "REJECTED 2 changes"] {
        assert!(text.contains(part), "{text}");
    }
}
