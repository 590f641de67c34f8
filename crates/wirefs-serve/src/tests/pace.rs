//! The time of a round trip, and that of the bare socket; printed, not asserted.

use super::client::*;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use wirefs_op::message::get::GetMode;
use wirefs_op::{NOTAG, Reply, Tag};

const ROUNDS: u32 = 1000;

/// The lower bound for any server: 64 bytes back and forth between two threads.
fn bare() -> Duration {
    let (mut near, mut far) = UnixStream::pair().unwrap();
    std::thread::spawn(move || {
        let mut bytes = [0; 64];
        while far.read_exact(&mut bytes).is_ok() && far.write_all(&bytes).is_ok() {}
    });
    median(|| {
        near.write_all(&[1; 64]).unwrap();
        near.read_exact(&mut [0; 64]).unwrap();
    })
}

fn median(mut round: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            round();
            started.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

#[test]
fn round_trips_of_all_kinds_are_answered() {
    let (server, _script) = server();
    let mut client = Client::silent(&server);
    client.exchange(NOTAG, version(1));
    client.exchange(Tag(1), attach(b""));
    let kinds = [
        ("ping", ping()),
        ("stat", stat(b"f")),
        ("get 4 KiB", get(b"f", GetMode::DATA, 4096)),
        ("get 128 KiB", get(b"f", GetMode::DATA, 128 * 1024)),
        ("put 4 KiB", put(b"f", 0, 4096)),
    ];
    println!("bare socket: {:?}", bare());
    for (name, request) in kinds {
        let time = median(|| {
            let reply = client.exchange(Tag(1), request.clone());
            assert!(!matches!(reply, Reply::Error(_)));
        });
        println!("{name}: {time:?}, {} workers", server.status().workers);
    }
}
