//! `--cache` bounds the resident memory of a mount's process, which is measured in a process of its own.

use crate::home::TestHome;
use std::fs;

const CACHE_BYTES: usize = 32 << 20;
const DIRECTORIES: usize = 60;
const FILES: usize = 100;
const FILE_BYTES: usize = 16 << 10;
const WALKS: usize = 3;
/// The number of files that are read between two measurements.
const MEASURED_FILES: usize = 200;

/// Returns the anonymous resident bytes of the mount's process. The program's own text is not among them.
fn resident(home: &TestHome) -> usize {
    let status = format!("/proc/{}/status", home.process().as_raw_nonzero());
    let status = fs::read_to_string(status).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() * 1024
}

// S-158
#[test]
fn search_of_many_files_takes_no_more_memory_than_the_cache_may() {
    let home = TestHome::new();
    let text = "a line of the file\n".repeat(FILE_BYTES / 19);
    for directory in 0..DIRECTORIES {
        for file in 0..FILES {
            home.write(&format!("export/d{directory}/file-{file:03}"), &text);
        }
    }
    let _server = home.serve(&["--listen", &home.url()]);
    home.wirefs(&["mount", "--cache", "32M", &home.url(), "mnt"]).succeeds();
    let (begin, mut most, mut read) = (resident(&home), 0, 0);
    for _ in 0..WALKS {
        for directory in fs::read_dir(home.path("mnt")).unwrap() {
            for file in fs::read_dir(directory.unwrap().path()).unwrap() {
                assert_eq!(fs::read(file.unwrap().path()).unwrap().len(), text.len());
                read += 1;
                if read % MEASURED_FILES == 0 {
                    most = most.max(resident(&home));
                }
            }
        }
    }
    assert_eq!(read, WALKS * DIRECTORIES * FILES);
    // The memory of a mount without a cache comes on top.
    let allowed = CACHE_BYTES / 5 * 6 + begin;
    assert!(
        most <= allowed,
        "{most} of {allowed} bytes, {begin} of them at the beginning: {}",
        home.status()
    );
    let cache = &home.status()["cache"];
    assert_eq!(cache["bytes_max"].as_u64(), Some(CACHE_BYTES as u64));
    let of_status: u64 = ["bytes", "names_bytes", "listings_bytes", "packed_bytes", "other_bytes"]
        .into_iter()
        .map(|part| cache[part].as_u64().unwrap())
        .sum();
    assert!(of_status > begin as u64 && of_status <= allowed as u64, "{cache}");
}
