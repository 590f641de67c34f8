//! Packets go to a host and come back.

use std::time::Duration;

use wirefs_raw::limits::BATCH_PACKETS_MAX;
use wirefs_raw::{EchoIdent, EchoSequence, EchoSocket, PacketBatch};

use crate::site::{IDENT, LOOPBACKS, on_a_host, open, receive_all, send, wait};

#[test]
fn payloads_of_all_sizes_return_unchanged() {
    on_a_host("sizes", || {
        for host in LOOPBACKS {
            let socket = open(host, IDENT);
            socket.reserve(64, 65_507).unwrap();
            for bytes in [0, 1, 2, 3, 55, 56, 1_471, 1_472, 1_473, 9_000, 65_487] {
                let payload: Vec<u8> = (0..bytes).map(|place| (place * 7) as u8).collect();
                send(&socket, [payload.as_slice()]);
                assert!(wait(&socket), "{host}: {bytes} bytes");
                assert_eq!(receive_all(&socket), [payload], "{host}: {bytes} bytes");
            }
        }
    });
}

#[test]
fn packets_circulate_in_batches_without_copies() {
    on_a_host("round", || {
        for host in LOOPBACKS {
            let socket = open(host, IDENT);
            socket.reserve(200, 1_000).unwrap();
            for number in 0..100u8 {
                send(&socket, [[number; 1_000].as_slice()]);
            }
            let mut batch = PacketBatch::new(1_000);
            let (mut seen, mut largest) = ([0u32; 100], 0);
            while seen.iter().any(|&count| count < 50) {
                assert!(wait(&socket));
                let arrivals = socket.receive(&mut batch, BATCH_PACKETS_MAX).unwrap();
                largest = largest.max(arrivals.replies);
                batch.exchange(|payload, _| {
                    assert!(payload.iter().all(|&byte| byte == payload[0]));
                    seen[usize::from(payload[0])] += 1;
                    Some(EchoSequence(9))
                });
                while !batch.is_sent() {
                    assert_eq!(socket.send(&mut batch).unwrap().too_large, 0);
                }
            }
            assert_eq!(largest, BATCH_PACKETS_MAX);
            // Packets keep their order on loopback.
            assert!(seen.iter().max().unwrap() - seen.iter().min().unwrap() <= 1);
            assert_eq!(socket.buffer_usage().unwrap().dropped, 0);
        }
    });
}

#[test]
fn socket_receives_neither_requests_nor_foreign_replies() {
    on_a_host("deaf", || {
        for host in LOOPBACKS {
            let (socket, other) = (open(host, IDENT), open(host, EchoIdent(0x1111)));
            send(&other, [b"not for you".as_slice(); 20]);
            let mut received = 0;
            while received < 20 {
                assert!(wait(&other), "{received}");
                received += receive_all(&other).len();
            }
            assert_eq!(received, 20);
            assert_eq!(receive_all(&socket), Vec::<Vec<u8>>::new());
            let memory = socket.buffer_usage().unwrap();
            assert_eq!((memory.held_bytes, memory.dropped), (0, 0), "nothing is charged");
        }
    });
}

#[test]
fn packet_larger_than_the_batch_is_discarded() {
    on_a_host("cut", || {
        for host in LOOPBACKS {
            let socket = open(host, IDENT);
            send(&socket, [&[1; 900][..], &[2; 100], &[3; 900]]);
            let mut batch = PacketBatch::new(100);
            let (mut seen, mut discarded) = (Vec::new(), 0);
            while seen.len() + discarded < 3 {
                assert!(wait(&socket));
                discarded += socket.receive(&mut batch, BATCH_PACKETS_MAX).unwrap().discarded;
                batch.exchange(|payload, _| {
                    seen.push(payload.to_vec());
                    None
                });
            }
            assert_eq!((seen, discarded), (vec![vec![2; 100]], 2));
        }
    });
}

/// How long the first of two packets waits in the receive buffer before the second is sent.
const SPAN: Duration = Duration::from_millis(30);

/// Returns the waiting times of the two packets; `None` unless exactly both were received at once.
fn waits(socket: &EchoSocket) -> Option<(Duration, Duration)> {
    receive_all(socket);
    send(socket, [b"early".as_slice()]);
    assert!(wait(socket));
    let begun = std::time::Instant::now();
    while begun.elapsed() < SPAN {
        std::hint::spin_loop();
    }
    send(socket, [b"late".as_slice()]);
    let mut batch = PacketBatch::new(100);
    socket.receive(&mut batch, BATCH_PACKETS_MAX).unwrap();
    let mut waits = Vec::new();
    batch.exchange(|payload, waited| {
        waits.push((payload.to_vec(), waited));
        None
    });
    match waits.as_slice() {
        [(first, early), (second, late)] if first == b"early" && second == b"late" => Some((*early, *late)),
        _ => None,
    }
}

#[test]
fn time_in_the_receive_buffer_is_reported() {
    on_a_host("waited", || {
        for host in LOOPBACKS {
            let socket = open(host, IDENT);
            socket.enable_timestamps().unwrap();
            // Linux starts to add timestamps some time after the request (`net_enable_timestamp` uses a work
            // queue). Earlier packets get the time of their reception.
            let both = (0..1000).filter_map(|_| waits(&socket)).find(|(early, _)| *early >= SPAN);
            let (early, late) = both.unwrap();
            assert!(late < early, "{late:?} {early:?}");
        }
    });
}
