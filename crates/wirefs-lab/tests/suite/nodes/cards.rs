//! Nodes connected by TLS over two cards: large reads use both cards, and one of them may be cut.
//!
//! ```text
//! [linus1] ══ two cards with limited rates ══ [linus2]       10.77.0.N on eth0, 10.78.0.N on eth1
//! ```

use std::path::PathBuf;

use super::ether::{listed, two_nodes};
use super::segment::{NodeSegment, wait_for};

/// Large enough to take a while at the rate of the cards.
const LARGE_BYTES: usize = 16 << 20;

/// Writes a new file with distinct blocks at linus2.
fn write_large(segment: &NodeSegment, version: u32) -> (PathBuf, Vec<u8>) {
    let words = (0..LARGE_BYTES as u32 / 4).map(|at| at.wrapping_mul(2_654_435_761) ^ version);
    let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
    let name = format!("large{version}");
    std::fs::write(segment.share(2).join(&name), &bytes).unwrap();
    (segment.net(1).join("linus2").join(name), bytes)
}

/// Creates two nodes with two cards of this rate.
fn limited_two_nodes(name: &str, rate: &str) -> NodeSegment {
    let segment = two_nodes(name, true, &["--via", "tls"]);
    for card in ["eth0", "eth1"] {
        segment.limit(2, card, rate);
    }
    segment
}

/// Returns the bytes received over both cards of linus1.
fn received_bytes(segment: &NodeSegment) -> [u64; 2] {
    ["eth0", "eth1"].map(|card| segment.received_bytes(1, card))
}

/// Returns the connections per card in the list of linus1.
fn connections(segment: &NodeSegment) -> Vec<(String, u64)> {
    let row = listed(segment, 1, "linus2");
    let path = |path: &serde_json::Value| {
        (path["card"].as_str().unwrap().to_owned(), path["connections"].as_u64().unwrap())
    };
    let mut ways: Vec<_> = row["ways"].as_array().unwrap().iter().map(path).collect();
    ways.sort();
    ways
}

fn one_each() -> Vec<(String, u64)> {
    ["eth0", "eth1"].map(|card| (card.to_owned(), 1)).to_vec()
}

/// S-122: the read of a large file uses both cards, and the status shows it; a small file opens no further connection.
#[test]
fn large_tls_read_uses_both_cards() {
    let segment = limited_two_nodes("both", "100mbit");
    assert_eq!(segment.read(1, "linus2/file"), "of 2\n");
    assert_eq!(connections(&segment).len(), 1);
    let mut version = 0;
    wait_for("a quarter of a file to come over each card", || {
        version += 1;
        let (path, bytes) = write_large(&segment, version);
        let before = received_bytes(&segment);
        let is_read = std::fs::read(path).is_ok_and(|read| read == bytes);
        let after = received_bytes(&segment);
        is_read && (0..2).all(|card| after[card] - before[card] >= LARGE_BYTES as u64 / 4)
    });
    assert_eq!(connections(&segment), one_each());
    assert!(segment.node(1, &["list"]).succeeds().contains("tcp+tls 2/2"));
    let status = segment.wirefs(1, &["status"]).succeeds();
    for card in ["eth0 to 10.77.0.2", "eth1 to 10.78.0.2"] {
        assert!(status.contains(&format!("way      {card}:6440: 1 connection")), "{status}");
    }
}

/// A second card in a network of the same name on an isolated cable costs a connection attempt only.
#[test]
fn isolated_second_card_does_not_delay_tls_reads() {
    let segment = two_nodes("nowhere", false, &["--via", "tls"]);
    let mut version = 0;
    wait_for("a large file to be read", || {
        version += 1;
        let (path, bytes) = write_large(&segment, version);
        std::fs::read(path).is_ok_and(|read| read == bytes)
    });
    let [_, second] = received_bytes(&segment);
    assert!(second < 1 << 20, "{second}");
    let ways = connections(&segment);
    assert!(ways.iter().all(|(card, count)| card == "eth0" && *count >= 1), "{ways:?}");
    assert!(segment.node(1, &["list"]).succeeds().contains("tcp+tls  "));
}

/// Reads a large file over two cards and cuts one of them during the read.
fn read_and_cut(name: &str, is_first: bool) {
    let segment = limited_two_nodes(name, "50mbit");
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
    let before = received_bytes(&segment);
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| std::fs::read(&path));
        wait_for("some of it to have come over each card", || {
            let after = received_bytes(&segment);
            (0..2).all(|card| after[card] - before[card] >= 1 << 20) || reading.is_finished()
        });
        cut("down");
        // On a busy machine a node may count as dead for a moment.
        let read = reading.join().unwrap();
        let again = || std::fs::read(&path).is_ok_and(|read| read == bytes);
        assert!(read.is_err() || read.is_ok_and(|read| read == bytes), "wrong bytes");
        wait_for("all of the file", again);
    });
    // All data of the cut card may have arrived before the cut.
    version += 1;
    wait_for("the cut card to be told", || {
        let is_shown = segment.node(1, &["list"]).succeeds().contains("tcp+tls 1/2");
        if !is_shown {
            version += 1;
            let (path, bytes) = write_large(&segment, version);
            assert!(std::fs::read(path).map_or(true, |read| read == bytes), "wrong bytes");
        }
        is_shown
    });
    cut("up");
    assert_eq!(segment.read(1, "linus2/file"), "of 2\n");
}

/// S-123: cutting one of two cards during a read causes no error.
#[test]
fn read_over_two_cards_completes_when_the_second_is_cut() {
    read_and_cut("second", false);
}

/// S-123: also if the first connection uses that card.
#[test]
fn read_over_two_cards_completes_when_the_first_is_cut() {
    read_and_cut("first", true);
}
