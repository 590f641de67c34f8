//! The cost of walking a cached tree: calls of the kernel, which are counted, and requests to the server, which must be
//! zero.

use crate::home::{Server, TestHome, wait_for};
use std::fs;

const DIRECTORIES: usize = 5;
const FILES: usize = 4;
/// Consecutive walks, so that an occasional call of the kernel itself does not distort the count.
const WALKS: usize = 20;

/// Mounts an unchanging tree.
fn mounted(home: &TestHome) -> Server {
    for directory in 0..DIRECTORIES {
        for file in 0..FILES {
            home.write(&format!("export/d{directory}/f{file}"), "some text\n");
        }
    }
    let server = home.serve(&["--listen", &home.url()]);
    home.wirefs(&["mount", &home.url(), "mnt"]).succeeds();
    server
}

/// Lists each directory and stats each file, as `find` does.
fn find(home: &TestHome) {
    let mut files = 0;
    for directory in fs::read_dir(home.path("mnt")).unwrap() {
        for file in fs::read_dir(directory.unwrap().path()).unwrap() {
            files += usize::from(file.unwrap().metadata().unwrap().is_file());
        }
    }
    assert_eq!(files, DIRECTORIES * FILES);
}

/// Also reads each file, as `grep -r` does.
fn grep(home: &TestHome) {
    find(home);
    for directory in 0..DIRECTORIES {
        for file in 0..FILES {
            assert_eq!(home.read(&format!("mnt/d{directory}/f{file}")), "some text\n");
        }
    }
}

fn calls(home: &TestHome) -> usize {
    usize::try_from(home.status()["calls"].as_u64().unwrap()).unwrap()
}

/// Returns the numbers of requests about the tree.
fn requests(home: &TestHome) -> Vec<u64> {
    let status = home.status();
    ["Get", "Find", "Put"].map(|kind| status["requests"][kind].as_u64().unwrap_or(0)).to_vec()
}

/// Walks until a walk costs `each` calls; then checks that further walks cost that and send no request.
fn assert_cost(home: &TestHome, walk: fn(&TestHome), each: usize) {
    wait_for("all to be known", || {
        let before = calls(home);
        walk(home);
        calls(home) - before <= each
    });
    let (before, asked_before) = (calls(home), requests(home));
    for _ in 0..WALKS {
        walk(home);
    }
    // Closes are reported asynchronously.
    wait_for("the last call", || calls(home) - before >= WALKS * each);
    let cost = calls(home) - before;
    assert!(cost < WALKS * (each + 1), "{cost} calls for {WALKS} walks of {each}");
    assert_eq!(requests(home), asked_before);
}

// S-34
#[test]
fn cached_walk_makes_no_calls() {
    let home = TestHome::new();
    let _server = mounted(&home);
    assert_cost(&home, find, 0);
}

// S-34
#[test]
fn cached_read_costs_open_and_close_only() {
    let home = TestHome::new();
    let _server = mounted(&home);
    assert_cost(&home, grep, 2 * DIRECTORIES * FILES);
}
