//! The selection of the carrier: Ethernet between nodes that share several cards or on request, otherwise TLS.
//!
//! ```text
//! [linus1] ══ two cards ══ [linus2]        10.77.0.N on eth0, 10.78.0.N on eth1
//! ```

use serde_json::Value;

use super::segment::{NodeSegment, wait_for};

/// A file of several hundred packets.
const LARGE_BYTES: usize = 1 << 20;

/// Creates two hosts with two cards whose nodes know each other.
pub(super) fn two_nodes(name: &str, joined: bool, options: &[&str]) -> NodeSegment {
    let segment = NodeSegment::new(name, 2);
    segment.add_second_cards(joined);
    for number in 1..=2 {
        let peer = format!("10.77.0.{}", 3 - number);
        let options: Vec<&str> =
            options.iter().map(|word| if *word == "PEER" { &peer } else { *word }).collect();
        segment.up_as(number, &format!("linus{number}"), &options).succeeds();
    }
    for (here, there) in [(1, "linus2"), (2, "linus1")] {
        wait_for("the nodes to know each other", || segment.state(here, there) == "alive");
    }
    segment
}

/// Returns the row of a node in a host's list.
pub(super) fn listed(segment: &NodeSegment, here: usize, name: &str) -> Value {
    let json = segment.node(here, &["list", "--json"]).succeeds();
    let rows: Vec<Value> = serde_json::from_str(&json).unwrap();
    rows.into_iter().find(|row| row["name"] == name).unwrap()
}

/// Returns the number of working paths to a node, and of all paths.
fn paths(segment: &NodeSegment, here: usize, name: &str) -> (usize, usize) {
    let row = listed(segment, here, name);
    let paths = row["paths"].as_array().unwrap();
    (paths.iter().filter(|path| path["is_up"] == true).count(), paths.len())
}

fn read_large(segment: &NodeSegment, version: u8) {
    std::fs::write(segment.share(2).join("large"), vec![version; LARGE_BYTES]).unwrap();
    wait_for("all of the file to be there", || {
        let read = std::fs::read(segment.net(1).join("linus2/large"));
        read.is_ok_and(|bytes| bytes == vec![version; LARGE_BYTES])
    });
}

/// S-120: two shared cards are both used without configuration; the status shows a cut card, and no access fails.
#[test]
fn two_shared_cards_are_used_and_one_may_be_cut() {
    let segment = two_nodes("cards", true, &[]);
    assert_eq!(listed(&segment, 1, "linus2")["cards"].as_array().unwrap().len(), 2);
    assert_eq!(listed(&segment, 1, "linus2")["via"], Value::Null);
    assert_eq!(segment.read(1, "linus2/file"), "of 2\n");
    assert_eq!(segment.read(2, "linus1/file"), "of 1\n");
    for (here, there) in [(1, "linus2"), (2, "linus1")] {
        assert_eq!(listed(&segment, here, there)["via"], "ether");
        wait_for("both ways to be up", || paths(&segment, here, there) == (2, 2));
    }
    read_large(&segment, 1);
    segment.set_second_cable(2, "down");
    read_large(&segment, 2);
    wait_for("the cut way to be told", || paths(&segment, 1, "linus2") == (1, 2));
    assert!(segment.node(1, &["list"]).succeeds().contains("ether 1/2"));
    let status = segment.wirefs(1, &["status"]).succeeds();
    assert!(status.contains("linus2: alive, over ether"), "{status}");
    // The status does not report the node's own mounts as dead; other mounts of the machine may be.
    let own = segment.net(1).display().to_string();
    let is_reported_dead = |line: &str| line.contains(&own) && line.contains("no process of this user");
    assert!(!status.lines().any(is_reported_dead), "{status}");
    assert!(status.contains("eth1 to ") && status.contains(": DOWN"), "{status}");
    segment.set_second_cable(2, "up");
    wait_for("the way to be up again", || paths(&segment, 1, "linus2") == (2, 2));
    read_large(&segment, 3);
}

/// Returns the local card of the TLS connection to a node.
fn card(segment: &NodeSegment, here: usize, name: &str) -> Option<String> {
    let row = listed(segment, here, name);
    let ways = row["ways"].as_array().unwrap();
    let used = ways.iter().find(|path| path["connections"].as_u64() > Some(0));
    used.map(|path| path["card"].as_str().unwrap().to_owned())
}

/// S-120: with TLS too, a dead card is no failure: the connection is restored over the other card, and the status shows
/// it.
#[test]
fn tls_moves_to_the_other_card_when_one_dies() {
    let segment = two_nodes("tls", true, &["--via", "tls"]);
    assert_eq!(segment.read(1, "linus2/file"), "of 2\n");
    assert_eq!(listed(&segment, 1, "linus2")["via"], "tcp+tls");
    let first = card(&segment, 1, "linus2").unwrap();
    let cut = |state: &str| match first.as_str() {
        "eth0" => segment.set_cable(2, state),
        _ => segment.set_second_cable(2, state),
    };
    let other = if first == "eth0" { "eth1" } else { "eth0" };
    cut("down");
    read_large(&segment, 1);
    wait_for("the other card", || card(&segment, 1, "linus2").as_deref() == Some(other));
    let status = segment.wirefs(1, &["status"]).succeeds();
    assert!(status.contains(&format!("way      {other} to 10.7")), "{status}");
    cut("up");
    read_large(&segment, 2);
}

/// S-120: a single shared card uses TLS, unless Ethernet is requested.
#[test]
fn one_shared_card_uses_tls_unless_ether_is_requested() {
    for (options, carrier) in [
        (&["--nic", "eth0"][..], "tcp+tls"),
        (&["--nic", "eth0", "--via", "ether"][..], "ether"),
        (&["--via", "tls"][..], "tcp+tls"),
    ] {
        let segment = two_nodes("one", true, options);
        assert_eq!(segment.read(1, "linus2/file"), "of 2\n");
        assert_eq!(listed(&segment, 1, "linus2")["via"], carrier, "{options:?}");
    }
}

/// S-120: networks of the same name on separate cables are not shared, regardless of the records.
#[test]
fn isolated_second_card_is_not_used() {
    let segment = two_nodes("apart", false, &[]);
    assert_eq!(segment.read(1, "linus2/file"), "of 2\n");
    let row = listed(&segment, 1, "linus2");
    assert_eq!(row["via"], "tcp+tls");
    assert_eq!(row["no_ether"], "1 of 2 paths carry data");
}

/// S-121: if Ethernet does not work although both nodes have a card in one network, TLS is used.
#[test]
fn tls_replaces_unreachable_ether_and_status_shows_the_reason() {
    let segment = two_nodes("silent", false, &["--nic", "eth1", "--peer", "PEER", "--via", "ether"]);
    assert_eq!(segment.read(1, "linus2/file"), "of 2\n");
    let row = listed(&segment, 1, "linus2");
    assert_eq!(row["via"], "tcp+tls");
    assert!(row["no_ether"].as_str().unwrap().contains("no wirefs server answers there"), "{row}");
    let status = segment.wirefs(1, &["status"]).succeeds();
    assert!(status.contains("linus2: alive, over tcp+tls (not ether: "), "{status}");
}

/// A node that was killed and restarted is reached over Ethernet again.
#[test]
fn restarted_node_is_reached_over_ether_again() {
    let segment = two_nodes("again", true, &[]);
    assert_eq!(segment.read(1, "linus2/file"), "of 2\n");
    segment.kill(2);
    wait_for("the list to say that it is dead", || segment.state(1, "linus2") == "dead");
    segment.start(2);
    assert_eq!(segment.read(1, "linus2/file"), "of 2\n");
    assert_eq!(listed(&segment, 1, "linus2")["via"], "ether");
    wait_for("both ways to be up", || paths(&segment, 1, "linus2") == (2, 2));
}

/// The node drops CAP_NET_RAW once its cards are open.
#[test]
fn node_with_ether_has_dropped_cap_net_raw() {
    let segment = two_nodes("right", true, &[]);
    for process in segment.processes(1) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", process.as_raw_nonzero())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("CapPrm:")).unwrap();
        let rights = u64::from_str_radix(line.trim(), 16).unwrap();
        assert_eq!(rights >> 13 & 1, 0, "CAP_NET_RAW in {line}");
    }
}
