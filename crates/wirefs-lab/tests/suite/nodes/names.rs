//! Names, keys, and authorization of nodes.

use super::segment::{NodeSegment, wait_for};

/// S-114: the first node with a name keeps it; a second one gets an error and exits.
#[test]
fn second_node_of_a_name_fails_and_the_first_keeps_it() {
    let segment = NodeSegment::of_three("names");
    segment.node(3, &["down"]).succeeds();
    let second = segment.up_as(3, "linus1", &[]);
    match second.is_success() {
        // The node learned of the conflict later and exited then.
        true => wait_for("the second to end", || !segment.node(3, &["list"]).is_success()),
        false => second.fails_with("the name linus1 is taken"),
    }
    assert_eq!(segment.read(2, "linus1/file"), "of 1\n");
    segment.up_as(3, "other", &[]).succeeds();
    wait_for("it to be there under another name", || segment.state(2, "other") == "alive");
    assert_eq!(segment.read(2, "other/file"), "of 3\n");
}

#[test]
fn unauthorized_node_is_in_no_table_and_has_no_access() {
    let segment = NodeSegment::new("keys", 3);
    let lines: String = [1, 2].map(|number| segment.identity(number)).concat();
    let file = segment.write("authorized", &lines);
    // Each listens on its own card only, given by address or by device.
    segment.up_as(1, "linus1", &["--authorized", &file, "--listen", "10.77.0.1:6440"]).succeeds();
    segment.up_as(2, "linus2", &["--authorized", &file, "--nic", "eth0"]).succeeds();
    segment.up_as(3, "stranger", &[]).succeeds();
    wait_for("the two to know each other", || segment.state(1, "linus2") == "alive");
    assert_eq!(segment.read(1, "linus2/file"), "of 2\n");
    assert_eq!(segment.state(1, "stranger"), "unknown");
    assert!(std::fs::read(segment.net(3).join("linus1/file")).is_err());
    // A direct mount is rejected too.
    segment.wirefs(3, &["mount", "tls://10.77.0.1/", "3/share"]).fails_with("wirefs allow");
}
