//! Messages are compressed over a slow line, and arrive as they were.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use wirefs_lab::LinkProfile;

use crate::site::Site;

const FILES: usize = 200;
const LINES: usize = 1000;

/// A line of 40 Mbit/s.
fn slow_line(name: &str) -> Site {
    let profile = LinkProfile::rtt(Duration::from_millis(10)).with(|lane| lane.rate_bits = Some(40_000_000));
    Site::tls(name, profile)
}

/// Some 30 KiB that look like a C file.
fn source_text(number: usize) -> String {
    (0..LINES).map(|line| format!("static int function_{number}_{line}(void);\n")).collect()
}

fn make_files(dir: &Path) {
    for number in 0..FILES {
        fs::write(dir.join(format!("{number:03}.c")), source_text(number)).unwrap();
    }
}

fn assert_files(dir: &Path) {
    for number in 0..FILES {
        assert!(
            fs::read_to_string(dir.join(format!("{number:03}.c"))).unwrap() == source_text(number),
            "{number}"
        );
    }
}

/// Bytes before and after compression, received and sent.
fn compressed(site: &Site, mount: &Path) -> [u64; 4] {
    let status = site.wirefs(&["status", "--json", mount.to_str().unwrap()]).succeeds();
    let status: Value = serde_json::from_str(&status).unwrap();
    ["in_plain", "in_packed", "out_plain", "out_packed"]
        .map(|name| status["compression"][name].as_u64().unwrap())
}

// S-200
#[test]
fn texts_are_compressed_over_a_slow_line_in_both_directions() {
    let site = slow_line("compressed");
    let (mount, bytes) = (site.mount("mnt", &[]), (FILES * source_text(0).len()) as u64);
    make_files(&mount);
    site.wirefs(&["sync", mount.to_str().unwrap()]).succeeds();
    assert_files(site.export());
    let [_, _, plain, packed] = compressed(&site, &mount);
    assert!(plain > bytes / 8, "{plain} of {bytes} bytes waited for the line");
    assert!(packed < plain / 3, "{packed} of {plain}");

    let reader = site.mount("reader", &["--no-cache"]);
    assert_files(&reader);
    let [plain, packed, ..] = compressed(&site, &reader);
    assert!(plain > bytes / 8, "{plain} of {bytes} bytes waited for the line");
    assert!(packed < plain / 3, "{packed} of {plain}");
}

// S-200
#[test]
fn nothing_is_compressed_where_that_is_switched_off() {
    let site = slow_line("uncompressed");
    let mount = site.mount("mnt", &["--no-compression"]);
    make_files(&mount);
    site.wirefs(&["sync", mount.to_str().unwrap()]).succeeds();
    assert_files(site.export());
    let reader = site.mount("reader", &["--no-cache", "-o", "no_compression"]);
    assert_files(&reader);
    assert_eq!([compressed(&site, &mount), compressed(&site, &reader)], [[0; 4]; 2]);
}
