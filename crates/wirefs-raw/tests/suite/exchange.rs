//! Packets go to a host and come back.

use std::time::Duration;

use wirefs_raw::limits::BATCH_PACKETS_MAX;
use wirefs_raw::{Batch, EchoSocket, Ident, Sequence};

use crate::site::{IDENT, LOOPBACKS, on_a_host, open, receive_all, send, wait};

#[test]
fn payloads_of_all_sizes_come_back_as_they_were_sent() {
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
fn packets_go_round_in_the_same_memory_many_at_a_time() {
    on_a_host("round", || {
        for host in LOOPBACKS {
            let socket = open(host, IDENT);
            socket.reserve(200, 1_000).unwrap();
            for number in 0..100u8 {
                send(&socket, [[number; 1_000].as_slice()]);
            }
            let mut batch = Batch::new(1_000);
            let (mut seen, mut largest) = ([0u32; 100], 0);
            while seen.iter().any(|&count| count < 50) {
                assert!(wait(&socket));
                let arrivals = socket.receive(&mut batch, BATCH_PACKETS_MAX).unwrap();
                largest = largest.max(arrivals.replies);
                batch.exchange(|payload, _| {
                    assert!(payload.iter().all(|&byte| byte == payload[0]));
                    seen[usize::from(payload[0])] += 1;
                    Some(Sequence(9))
                });
                while !batch.is_sent() {
                    assert_eq!(socket.send(&mut batch).unwrap().too_large, 0);
                }
            }
            assert_eq!(largest, BATCH_PACKETS_MAX);
            // In order, since nothing overtakes on loopback.
            assert!(seen.iter().max().unwrap() - seen.iter().min().unwrap() <= 1);
            assert_eq!(socket.memory().unwrap().dropped, 0);
        }
    });
}

#[test]
fn socket_hears_neither_requests_nor_the_replies_of_others() {
    on_a_host("deaf", || {
        for host in LOOPBACKS {
            let (socket, other) = (open(host, IDENT), open(host, Ident(0x1111)));
            send(&other, [b"not for you".as_slice(); 20]);
            let mut heard = 0;
            while heard < 20 {
                assert!(wait(&other), "{heard}");
                heard += receive_all(&other).len();
            }
            assert_eq!(heard, 20);
            assert_eq!(receive_all(&socket), Vec::<Vec<u8>>::new());
            let memory = socket.memory().unwrap();
            assert_eq!((memory.held_bytes, memory.dropped), (0, 0), "nothing is even charged");
        }
    });
}

#[test]
fn packet_larger_than_the_batch_is_passed_over() {
    on_a_host("cut", || {
        for host in LOOPBACKS {
            let socket = open(host, IDENT);
            send(&socket, [&[1; 900][..], &[2; 100], &[3; 900]]);
            let mut batch = Batch::new(100);
            let (mut seen, mut others) = (Vec::new(), 0);
            while seen.len() + others < 3 {
                assert!(wait(&socket));
                others += socket.receive(&mut batch, BATCH_PACKETS_MAX).unwrap().others;
                batch.exchange(|payload, _| {
                    seen.push(payload.to_vec());
                    None
                });
            }
            assert_eq!((seen, others), (vec![vec![2; 100]], 2));
        }
    });
}

/// How long the first of two packets is left in the receive buffer before the second is sent.
const SPAN: Duration = Duration::from_millis(30);

/// How long each of the two was there; none where they were not both there at once, and alone.
fn waits(socket: &EchoSocket) -> Option<(Duration, Duration)> {
    receive_all(socket);
    send(socket, [b"early".as_slice()]);
    assert!(wait(socket));
    let begun = std::time::Instant::now();
    while begun.elapsed() < SPAN {
        std::hint::spin_loop();
    }
    send(socket, [b"late".as_slice()]);
    let mut batch = Batch::new(100);
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
fn time_in_the_receive_buffer_is_told() {
    on_a_host("waited", || {
        for host in LOOPBACKS {
            let socket = open(host, IDENT);
            socket.note_arrivals().unwrap();
            // Linux begins to stamp packets some time after it is asked (`net_enable_timestamp` leaves it to a work queue), and stamps
            // those that came before only when they are received.
            let both = (0..1000).filter_map(|_| waits(&socket)).find(|(early, _)| *early >= SPAN);
            let (early, late) = both.unwrap();
            assert!(late < early, "{late:?} {early:?}");
        }
    });
}
