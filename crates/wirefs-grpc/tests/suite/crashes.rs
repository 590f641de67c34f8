//! The scenarios of the published systems: a server that is killed, and the last close that wins.

use crate::gate::{Gate, path};
use crate::proto;
use bytes::Bytes;
use std::ops::Range;
use tokio::sync::mpsc::channel;
use tokio_stream::wrappers::ReceiverStream;

const KIB: usize = 1024;
const PIECES: usize = 200;

/// The piece of a file that one write carries.
fn piece(number: usize) -> Bytes {
    Bytes::from(vec![number as u8; KIB])
}

/// Writes pieces, each in a request. Returns the verifiers that the gate answered with.
async fn write(gate: &Gate, pieces: Range<usize>) -> Vec<u64> {
    let mut client = gate.client();
    let mut verifiers = Vec::new();
    for number in pieces {
        let offset = (number * KIB) as u64;
        let ask = proto::WriteRequest {
            path: "f".into(),
            offset,
            data: piece(number),
            ..proto::WriteRequest::default()
        };
        verifiers.push(client.write(ask).await.unwrap().into_inner().verifier);
    }
    verifiers.dedup();
    verifiers
}

fn create() -> proto::CreateRequest {
    proto::CreateRequest { path: "f".into(), mode: 0o644, ..proto::CreateRequest::default() }
}

fn all_pieces() -> Vec<u8> {
    (0..PIECES).flat_map(piece).collect()
}

#[test]
fn a_gate_killed_before_the_commit_says_by_its_verifier_that_writes_must_be_sent_again() {
    let mut gate = Gate::start(&[]);
    let handle = gate.runtime.handle().clone();
    handle.block_on(async {
        gate.client().create(create()).await.unwrap();
        let before = write(&gate, 0..PIECES).await;
        assert_eq!(before.len(), 1);
        gate.kill_and_restart();
        let committed = loop {
            // The channel notices the end of its connection with the first request.
            if let Ok(committed) = gate.client().commit(path("f")).await {
                break committed.into_inner().verifier;
            }
        };
        assert_ne!(committed, before[0]);
        assert_eq!(write(&gate, 0..PIECES).await, [committed]);
        assert_eq!(gate.client().commit(path("f")).await.unwrap().into_inner().verifier, committed);
    });
    assert!(std::fs::read(gate.file("f")).unwrap() == all_pieces());
}

#[test]
fn a_gate_killed_between_writes_is_noticed_at_the_next_one() {
    let mut gate = Gate::start(&[]);
    let handle = gate.runtime.handle().clone();
    handle.block_on(async {
        gate.client().create(create()).await.unwrap();
        let before = write(&gate, 0..PIECES / 2).await;
        gate.kill_and_restart();
        while gate.client().lookup(path("f")).await.is_err() {}
        let after = write(&gate, PIECES / 2..PIECES).await;
        assert!(before.len() == 1 && after.len() == 1 && before != after);
        // Half of the file has the old verifier, and is sent again before the commit.
        assert_eq!(write(&gate, 0..PIECES / 2).await, after);
        assert_eq!(gate.client().commit(path("f")).await.unwrap().into_inner().verifier, after[0]);
    });
    assert!(std::fs::read(gate.file("f")).unwrap() == all_pieces());
}

// S-192
#[test]
fn the_last_store_that_ends_wins_whole() {
    let gate = Gate::start(&[]);
    gate.write("f", "old");
    let part = |byte: u8, is_last| proto::StoreRequest {
        path: "f".into(),
        mode: 0o644,
        data: Bytes::from(vec![byte; 100 * KIB]),
        is_last,
    };
    gate.runtime.block_on(async {
        let mut ends = Vec::new();
        for _ in 0..2 {
            let (sender, receiver) = channel(1);
            let mut client = gate.client();
            let storing = tokio::spawn(async move { client.store(ReceiverStream::new(receiver)).await });
            ends.push((sender, storing));
        }
        // The contents of both arrive in turns; the first one to begin ends last.
        for _ in 0..5 {
            for (byte, (sender, _)) in (1..).zip(&ends) {
                sender.send(part(byte, false)).await.unwrap();
            }
        }
        for (byte, (sender, storing)) in [1, 2].into_iter().zip(ends).rev() {
            sender.send(part(byte, true)).await.unwrap();
            storing.await.unwrap().unwrap();
            assert!(std::fs::read(gate.file("f")).unwrap() == vec![byte; 600 * KIB]);
        }
    });
}

#[test]
fn a_gate_killed_in_the_middle_of_a_store_leaves_the_old_file_and_the_stream_is_sent_again() {
    let mut gate = Gate::start(&[]);
    gate.write("f", "old");
    let handle = gate.runtime.handle().clone();
    let part = |is_last| proto::StoreRequest {
        path: "f".into(),
        mode: 0o644,
        data: Bytes::from(vec![7; 100 * KIB]),
        is_last,
    };
    handle.block_on(async {
        let (sender, receiver) = channel(1);
        let mut client = gate.client();
        let storing = tokio::spawn(async move { client.store(ReceiverStream::new(receiver)).await });
        for _ in 0..5 {
            sender.send(part(false)).await.unwrap();
        }
        gate.kill();
        storing.await.unwrap().unwrap_err();
        assert_eq!(std::fs::read(gate.file("f")).unwrap(), b"old");
        gate.restart();
        let again = loop {
            let parts = (0..6).map(|number| part(number == 5)).collect::<Vec<_>>();
            if let Ok(stored) = gate.client().store(tokio_stream::iter(parts)).await {
                break stored.into_inner();
            }
        };
        assert_eq!(again.size, 600 * KIB as u64);
    });
    assert!(std::fs::read(gate.file("f")).unwrap() == vec![7; 600 * KIB]);
}
