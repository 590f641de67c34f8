//! The program with short measurements. Needs root, `ip`, /dev/net/tun, /dev/fuse, sshfs, and wirefs built beside it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod sources;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_wirefs-figures");

fn scratch_directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("wirefs-figures-{name}-{}", std::process::id()));
    fs::create_dir(&path).unwrap();
    path
}

// S-90
#[test]
fn published_kills_servers_at_each_stage_without_data_loss() {
    let at = scratch_directory("published");
    let page = at.join("page.md");
    let run = Command::new(PROGRAM).args(["published", "--short", "--out"]).arg(&page).output().unwrap();
    // Fails if a server was killed at the wrong stage, or if a byte is wrong.
    assert!(run.status.success(), "{run:?}");
    let stderr = String::from_utf8(run.stderr).unwrap();
    for stage in ["crash during commit: ", "crash during writes: "] {
        let restarted = |line: &&str| line.contains(stage) && !line.contains("restart 0.0");
        assert_eq!(stderr.lines().filter(restarted).count(), 3, "{stderr}");
    }
    let text = fs::read_to_string(&page).unwrap();
    for peer in ["wirefs", "wirefs --no-journal", "wirefs --mode commit"] {
        let row = text.lines().find(|line| line.starts_with(&format!("| {peer} |"))).unwrap();
        let cells: Vec<f64> = row.split('|').skip(2).filter_map(|cell| cell.trim().parse().ok()).collect();
        assert!(cells.len() == 7 && cells.iter().all(|cell| *cell >= 0.0), "{row}");
    }
    for call in ["open, cold", "read, cold", "open, warm", "read, warm", "write", "close"] {
        assert_eq!(text.lines().filter(|line| line.starts_with(&format!("| {call}, "))).count(), 2, "{text}");
    }
    for figure in ["batches.svg", "first-open-and-read-0ms.svg", "close-0ms.svg"] {
        assert!(
            fs::read_to_string(at.join("figures").join(figure)).unwrap().contains("<polyline"),
            "{figure}"
        );
    }
    fs::remove_dir_all(at).unwrap();
}

#[test]
fn fetch_measures_each_size_with_each_peer() {
    let at = scratch_directory("fetch");
    let page = at.join("page.md");
    let run = Command::new(PROGRAM)
        .args(["fetch", "--short", "--rate", "100mbit", "--out"])
        .arg(&page)
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.contains("### Fetching a file over cards of 100 Mbit/s"), "{text}");
    // One row per load, with all four peers, and NFS if it is installed.
    for size in ["| 10 K |", "| 50 K |"] {
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with(size)).collect();
        assert_eq!(rows.len(), 2, "{text}");
        for row in rows {
            let cells: Vec<&str> = row.split('|').map(str::trim).skip(2).collect();
            let ms = |cell: &&str| cell.parse::<f64>().ok();
            // On a busy machine the time of a fetch minus that of an empty file may be zero.
            let is_nfs = ms(&cells[0]).is_some_and(|ms| ms >= 0.0) || cells[0] == "not installed";
            assert!(is_nfs && cells[1..5].iter().all(|cell| ms(cell).is_some_and(|ms| ms > 0.0)), "{row}");
        }
    }
    fs::remove_dir_all(at).unwrap();
}
