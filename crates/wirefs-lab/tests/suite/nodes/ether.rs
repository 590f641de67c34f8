//! Which carrier nodes take: Ethernet where they share more than one card or it is asked for, TLS elsewhere.
//!
//! ```text
//! [linus1] ══ two cards ══ [linus2]        10.77.0.N on eth0, 10.78.0.N on eth1
//! ```

use serde_json::Value;

use super::segment::{Segment, wait_for};

/// A file that takes some hundred packets.
const LARGE_BYTES: usize = 1 << 20;

/// Two hosts with two cards, whose nodes know each other.
pub(super) fn pair(name: &str, joined: bool, options: &[&str]) -> Segment {
    let segment = Segment::new(name, 2);
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

/// What the list of a host says of a node.
pub(super) fn listed(segment: &Segment, here: usize, name: &str) -> Value {
    let json = segment.node(here, &["list", "--json"]).succeeds();
    let rows: Vec<Value> = serde_json::from_str(&json).unwrap();
    rows.into_iter().find(|row| row["name"] == name).unwrap()
}

/// How many ways to a node carry data, of how many.
fn paths(segment: &Segment, here: usize, name: &str) -> (usize, usize) {
    let row = listed(segment, here, name);
    let paths = row["paths"].as_array().unwrap();
    (paths.iter().filter(|path| path["is_up"] == true).count(), paths.len())
}

fn read_large(segment: &Segment, version: u8) {
    std::fs::write(segment.share(2).join("large"), vec![version; LARGE_BYTES]).unwrap();
    wait_for("all of the file to be there", || {
        let read = std::fs::read(segment.net(1).join("linus2/large"));
        read.is_ok_and(|bytes| bytes == vec![version; LARGE_BYTES])
    });
}

/// S-89: two cards that both nodes have are both used, without a word; one that is cut is told, and nothing fails.
#[test]
fn two_shared_cards_are_both_taken_and_one_may_be_cut() {
    let segment = pair("cards", true, &[]);
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
    // The node's own mounts are not taken for dead ones; others of the machine may be.
    let own = segment.net(1).display().to_string();
    let taken_for_dead = |line: &str| line.contains(&own) && line.contains("no process of this user");
    assert!(!status.lines().any(taken_for_dead), "{status}");
    assert!(status.contains("eth1 to ") && status.contains(": DOWN"), "{status}");
    segment.set_second_cable(2, "up");
    wait_for("the way to be up again", || paths(&segment, 1, "linus2") == (2, 2));
    read_large(&segment, 3);
}

/// The card of ours over which a node is reached by TLS.
fn card(segment: &Segment, here: usize, name: &str) -> Option<String> {
    let row = listed(segment, here, name);
    let ways = row["ways"].as_array().unwrap();
    let used = ways.iter().find(|way| way["connections"].as_u64() > Some(0));
    used.map(|way| way["card"].as_str().unwrap().to_owned())
}

/// S-89: over TLS, too, a card that dies is no end: the connection is made again over the other one, and that is told.
#[test]
fn over_tls_the_other_card_is_taken_when_one_dies() {
    let segment = pair("tls", true, &["--via", "tls"]);
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

/// S-89: one shared card is left to TLS, unless Ethernet is asked for.
#[test]
fn one_shared_card_is_left_to_tls_unless_ether_is_asked_for() {
    for (options, carrier) in [
        (&["--nic", "eth0"][..], "tcp+tls"),
        (&["--nic", "eth0", "--via", "ether"][..], "ether"),
        (&["--via", "tls"][..], "tcp+tls"),
    ] {
        let segment = pair("one", true, options);
        assert_eq!(segment.read(1, "linus2/file"), "of 2\n");
        assert_eq!(listed(&segment, 1, "linus2")["via"], carrier, "{options:?}");
    }
}

/// S-89: networks of one name on cables that do not meet are not shared, whatever the records say.
#[test]
fn a_second_card_that_leads_nowhere_does_not_count() {
    let segment = pair("apart", false, &[]);
    assert_eq!(segment.read(1, "linus2/file"), "of 2\n");
    let row = listed(&segment, 1, "linus2");
    assert_eq!(row["via"], "tcp+tls");
    assert_eq!(row["no_ether"], "1 of 2 ways carries data");
}

/// S-90: where Ethernet does not answer, though both have a card in one network, TLS does.
#[test]
fn tls_is_taken_where_ether_does_not_answer_and_the_reason_is_told() {
    let segment = pair("silent", false, &["--nic", "eth1", "--peer", "PEER", "--via", "ether"]);
    assert_eq!(segment.read(1, "linus2/file"), "of 2\n");
    let row = listed(&segment, 1, "linus2");
    assert_eq!(row["via"], "tcp+tls");
    assert!(row["no_ether"].as_str().unwrap().contains("no wirefs server answers there"), "{row}");
    let status = segment.wirefs(1, &["status"]).succeeds();
    assert!(status.contains("linus2: alive, over tcp+tls (not ether: "), "{status}");
}

/// A node that is killed and comes back is reached over Ethernet again.
#[test]
fn a_node_that_comes_back_is_reached_over_ether_again() {
    let segment = pair("again", true, &[]);
    assert_eq!(segment.read(1, "linus2/file"), "of 2\n");
    segment.kill(2);
    wait_for("the list to say that it is dead", || segment.state(1, "linus2") == "dead");
    segment.start(2);
    assert_eq!(segment.read(1, "linus2/file"), "of 2\n");
    assert_eq!(listed(&segment, 1, "linus2")["via"], "ether");
    wait_for("both ways to be up", || paths(&segment, 1, "linus2") == (2, 2));
}

/// The right to raw packets is given up once the cards are open.
#[test]
fn a_node_that_speaks_ether_has_given_up_the_right_to_raw_packets() {
    let segment = pair("right", true, &[]);
    for process in segment.processes(1) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", process.as_raw_nonzero())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("CapPrm:")).unwrap();
        let rights = u64::from_str_radix(line.trim(), 16).unwrap();
        assert_eq!(rights >> 13 & 1, 0, "CAP_NET_RAW in {line}");
    }
}
