//! Nodes that reach each other by TLS over two cards: much that is read comes over both of them, and one of them may be cut.
//!
//! ```text
//! [linus1] ══ two cards, each with a rate ══ [linus2]        10.77.0.N on eth0, 10.78.0.N on eth1
//! ```

use std::path::PathBuf;

use super::ether::{listed, pair};
use super::segment::{Segment, wait_for};

/// A file that takes a while at the rate of the cards.
const LARGE_BYTES: usize = 16 << 20;

/// Writes a new file at linus2, of which no two blocks are alike.
fn write_large(segment: &Segment, version: u32) -> (PathBuf, Vec<u8>) {
    let words = (0..LARGE_BYTES as u32 / 4).map(|at| at.wrapping_mul(2_654_435_761) ^ version);
    let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
    let name = format!("large{version}");
    std::fs::write(segment.share(2).join(&name), &bytes).unwrap();
    (segment.net(1).join("linus2").join(name), bytes)
}

/// Two nodes with two cards of this rate.
fn limited_pair(name: &str, rate: &str) -> Segment {
    let segment = pair(name, true, &["--via", "tls"]);
    for card in ["eth0", "eth1"] {
        segment.limit(2, card, rate);
    }
    segment
}

/// What has come over both cards of linus1.
fn came(segment: &Segment) -> [u64; 2] {
    ["eth0", "eth1"].map(|card| segment.received_bytes(1, card))
}

/// Connections by card, as the list of linus1 has it.
fn connections(segment: &Segment) -> Vec<(String, u64)> {
    let row = listed(segment, 1, "linus2");
    let way = |way: &serde_json::Value| {
        (way["card"].as_str().unwrap().to_owned(), way["connections"].as_u64().unwrap())
    };
    let mut ways: Vec<_> = row["ways"].as_array().unwrap().iter().map(way).collect();
    ways.sort();
    ways
}

fn one_each() -> Vec<(String, u64)> {
    ["eth0", "eth1"].map(|card| (card.to_owned(), 1)).to_vec()
}

/// S-138: what is read of a large file comes over both cards, and that is told; a small one makes no further connection.
#[test]
fn much_that_is_read_over_tls_comes_over_both_cards() {
    let segment = limited_pair("both", "100mbit");
    assert_eq!(segment.read(1, "linus2/file"), "of 2\n");
    assert_eq!(connections(&segment).len(), 1);
    let mut version = 0;
    wait_for("a quarter of a file to come over each card", || {
        version += 1;
        let (path, bytes) = write_large(&segment, version);
        let before = came(&segment);
        let is_read = std::fs::read(path).is_ok_and(|read| read == bytes);
        let after = came(&segment);
        is_read && (0..2).all(|card| after[card] - before[card] >= LARGE_BYTES as u64 / 4)
    });
    assert_eq!(connections(&segment), one_each());
    assert!(segment.node(1, &["list"]).succeeds().contains("tcp+tls 2/2"));
    let status = segment.wirefs(1, &["status"]).succeeds();
    for card in ["eth0 to 10.77.0.2", "eth1 to 10.78.0.2"] {
        assert!(status.contains(&format!("way      {card}:6440: 1 connection")), "{status}");
    }
}

/// A second card in a network of the same name, on a cable that leads nowhere, costs a dial and brings nothing.
#[test]
fn a_second_card_that_leads_nowhere_delays_no_read_over_tls() {
    let segment = pair("nowhere", false, &["--via", "tls"]);
    let mut version = 0;
    wait_for("a large file to be read", || {
        version += 1;
        let (path, bytes) = write_large(&segment, version);
        std::fs::read(path).is_ok_and(|read| read == bytes)
    });
    let [_, second] = came(&segment);
    assert!(second < 1 << 20, "{second}");
    let ways = connections(&segment);
    assert!(ways.iter().all(|(card, count)| card == "eth0" && *count >= 1), "{ways:?}");
    assert!(segment.node(1, &["list"]).succeeds().contains("tcp+tls  "));
}

/// Reads a large file over two cards, of which one is cut once some of it has come.
fn read_and_cut(name: &str, is_first: bool) {
    let segment = limited_pair(name, "50mbit");
    assert_eq!(segment.read(1, "linus2/file"), "of 2\n");
    let first = connections(&segment).remove(0).0;
    let mut version = 0;
    wait_for("a connection over each card", || {
        version += 1;
        let (path, bytes) = write_large(&segment, version);
        std::fs::read(path).is_ok_and(|read| read == bytes) && connections(&segment) == one_each()
    });
    let cut = |state: &str| match (first.as_str() == "eth0") == is_first {
        true => segment.set_cable(2, state),
        false => segment.set_second_cable(2, state),
    };
    let (path, bytes) = write_large(&segment, version + 1);
    let before = came(&segment);
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| std::fs::read(&path));
        wait_for("some of it to have come over each card", || {
            let after = came(&segment);
            (0..2).all(|card| after[card] - before[card] >= 1 << 20) || reading.is_finished()
        });
        cut("down");
        // On a machine that has much to do a node may count as dead for a moment.
        let read = reading.join().unwrap();
        let again = || std::fs::read(&path).is_ok_and(|read| read == bytes);
        assert!(read.is_err() || read.is_ok_and(|read| read == bytes), "bytes of something else");
        wait_for("all of the file", again);
    });
    // What was to come over it may have been there already.
    version += 1;
    wait_for("the cut card to be told", || {
        let is_told = segment.node(1, &["list"]).succeeds().contains("tcp+tls 1/2");
        if !is_told {
            version += 1;
            let (path, bytes) = write_large(&segment, version);
            assert!(std::fs::read(path).map_or(true, |read| read == bytes), "bytes of something else");
        }
        is_told
    });
    cut("up");
    assert_eq!(segment.read(1, "linus2/file"), "of 2\n");
}

/// S-139: a card that is cut while a file is read over two fails nothing.
#[test]
fn a_read_over_two_cards_ends_when_the_second_is_cut() {
    read_and_cut("second", false);
}

/// S-139: also if the first connection goes over it.
#[test]
fn a_read_over_two_cards_ends_when_the_first_is_cut() {
    read_and_cut("first", true);
}
