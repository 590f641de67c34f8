//! Ordinary users: fusermount3, and symlinks instead of mounts below /net.

use super::segment::{NodeSegment, wait_for};
use std::fs;

/// An unprivileged user that exists on every system.
const NOBODY: u32 = 65_534;

#[test]
fn ordinary_users_access_nodes_through_symlinks() {
    let segment = NodeSegment::of_users("users", 2, NOBODY);
    for number in 1..=2 {
        segment.up_as(number, &format!("linus{number}"), &[]).succeeds();
    }
    wait_for("them to know each other", || segment.state(1, "linus2") == "alive");
    let read = |path: &str| {
        let path = segment.net(1).join(path);
        segment.program(1, "cat").arg(path).output().map(|output| output.stdout).unwrap()
    };
    wait_for("the other's file", || read("linus2/file") == b"of 2\n");
    assert_eq!(read("SELF/file"), b"of 1\n");
    assert_eq!(read("linus1/file"), b"of 1\n");
    let links = segment.program(1, "readlink").arg(segment.net(1).join("SELF")).output().unwrap();
    assert_eq!(String::from_utf8(links.stdout).unwrap().trim_end(), segment.share(1).to_str().unwrap());
    segment.node(1, &["down"]).succeeds();
    assert_eq!(fs::read_dir(segment.net(1)).unwrap().count(), 0);
}
