//! The contract of all carriers, one function per rule.

use std::collections::VecDeque;
use std::sync::mpsc;
use std::time::Duration;

use wirefs_carrier::limits::SEND_QUEUE_BYTES_MAX;
use wirefs_carrier::{Carrier, CarrierLost, Class, SendProgress};
use wirefs_op::Frame;
use wirefs_op::limits::{DATA_BYTES_MAX, MESSAGE_BYTES_MAX};

use crate::testbeds::Testbed;
use crate::traffic::{PATIENCE, check, data_bytes, fill, frame, receive, send_queue};

const SECOND: Duration = Duration::from_secs(1);

pub fn frames_arrive_whole_and_in_order_in_both_directions(testbed: &dyn Testbed) {
    let (client, server) = testbed.connect();
    for (from, to) in [(client.sink, server.source), (server.sink, client.source)] {
        let (mut sink, mut source) = (from, to);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut queue: VecDeque<Frame> = (0..600).map(|n| frame(1, n, data_bytes(n))).collect();
                while sink.send(&mut queue).unwrap() == SendProgress::Blocked {
                    sink.wait_writable(SECOND).unwrap();
                }
                assert!(queue.is_empty());
            });
            for number in 0..600 {
                assert_eq!(receive(&mut source), (1, number));
            }
        });
    }
}

pub fn many_threads_push_and_nothing_is_lost(testbed: &dyn Testbed) {
    const THREADS: u8 = 4;
    const EACH: u32 = 300;
    let (client, mut server) = testbed.connect();
    let (send_queue, _lost) = send_queue(client.sink, client.closer);
    std::thread::scope(|scope| {
        for sender in 0..THREADS {
            let send_queue = send_queue.clone();
            scope.spawn(move || {
                for number in 0..EACH {
                    send_queue.push(frame(sender, number, data_bytes(number)), Class::Urgent);
                    send_queue.flush();
                }
            });
        }
        let mut next = [0; THREADS as usize];
        for _ in 0..u32::from(THREADS) * EACH {
            let (sender, number) = receive(&mut server.source);
            assert_eq!(number, next[sender as usize], "the order of thread {sender} is kept");
            next[sender as usize] += 1;
        }
    });
    assert!(send_queue.finish(PATIENCE));
    assert_eq!(send_queue.sent().0, u64::from(THREADS) * u64::from(EACH));
}

pub fn urgent_frames_overtake_queued_bulk(testbed: &dyn Testbed) {
    const BULK: u32 = 256;
    let (client, mut server) = testbed.connect();
    let (send_queue, _lost) = send_queue(client.sink, client.closer);
    for number in 0..BULK {
        send_queue.push(frame(0, number, DATA_BYTES_MAX), Class::Bulk);
    }
    send_queue.flush();
    send_queue.push(frame(1, 0, 10), Class::Urgent);
    send_queue.flush();
    assert!(send_queue.queued_bytes() > DATA_BYTES_MAX, "the kernel cannot hold it all");
    let received: Vec<_> = (0..=BULK).map(|_| receive(&mut server.source)).collect();
    let position = received.iter().position(|&(sender, _)| sender == 1).unwrap();
    assert!(
        position < BULK as usize * 3 / 4,
        "the urgent frame came only after {position} of {BULK} bulk frames"
    );
    assert!(received.iter().filter(|(sender, _)| *sender == 0).map(|(_, number)| *number).eq(0..BULK));
}

pub fn full_rate_in_both_directions_does_not_deadlock(testbed: &dyn Testbed) {
    const FRAMES: u32 = 160;
    let (client, server) = testbed.connect();
    std::thread::scope(|scope| {
        for Carrier { mut source, sink, closer, .. } in [client, server] {
            let (send_queue, _lost) = send_queue(sink, closer);
            scope.spawn(move || {
                std::thread::scope(|scope| {
                    let pushing = send_queue.clone();
                    scope.spawn(move || {
                        for number in 0..FRAMES {
                            assert!(pushing.push_wait(frame(3, number, DATA_BYTES_MAX), Class::Bulk));
                            pushing.flush();
                        }
                    });
                    for number in 0..FRAMES {
                        assert_eq!(receive(&mut source), (3, number));
                    }
                });
                // Neither side closes before the other has everything.
                send_queue.push(frame(4, 0, 0), Class::Bulk);
                send_queue.flush();
                assert_eq!(receive(&mut source), (4, 0));
                assert!(send_queue.finish(PATIENCE));
            });
        }
    });
}

/// Several threads wait for an answer each; an unsent frame would leave one waiting for ever.
pub fn no_wake_up_is_lost(testbed: &dyn Testbed) {
    const THREADS: u8 = 3;
    const ROUNDS: u32 = 400;
    let (client, server) = testbed.connect();
    let (out, _lost) = send_queue(client.sink, client.closer);
    let (back, _back_lost) = send_queue(server.sink, server.closer);
    let (mut client_source, mut server_source) = (client.source, server.source);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while let Ok(Some(body)) = server_source.receive() {
                let (sender, number) = check(&body);
                back.push(frame(sender, number, body.len() - 7), Class::Urgent);
                back.flush();
            }
        });
        let (notify, notified): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| mpsc::channel()).unzip();
        scope.spawn(move || {
            while let Ok(Some(body)) = client_source.receive() {
                let (sender, number) = check(&body);
                notify[sender as usize].send(number).unwrap();
            }
        });
        let workers: Vec<_> = (0..THREADS)
            .zip(notified)
            .map(|(sender, notified)| {
                let out = out.clone();
                scope.spawn(move || {
                    for number in 0..ROUNDS {
                        let class = if number % 3 == 0 { Class::Bulk } else { Class::Urgent };
                        out.push(frame(sender, number, (number as usize % 7) * 20), class);
                        out.flush();
                        assert_eq!(notified.recv_timeout(PATIENCE), Ok(number), "an answer never came");
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().unwrap();
        }
        assert!(out.finish(PATIENCE));
    });
}

pub fn push_wait_bounds_the_queue(testbed: &dyn Testbed) {
    let (client, server) = testbed.connect();
    let (send_queue, _lost) = send_queue(client.sink, client.closer);
    let mut pushed_all = true;
    std::thread::scope(|scope| {
        let pushing = send_queue.clone();
        let (notify, notified) = mpsc::channel();
        let pusher = scope.spawn(move || {
            // The peer reads nothing, so this ends only with the close.
            (0..10_000).all(|number| {
                let alive = pushing.push_wait(frame(0, number, DATA_BYTES_MAX), Class::Bulk);
                pushing.flush();
                let _gone = notify.send(pushing.queued_bytes());
                alive
            })
        });
        while let Ok(queued_bytes) = notified.recv() {
            assert!(queued_bytes <= SEND_QUEUE_BYTES_MAX + 1024 * 1024, "{queued_bytes} bytes are queued");
            if queued_bytes > SEND_QUEUE_BYTES_MAX {
                send_queue.close();
            }
        }
        pushed_all = pusher.join().unwrap();
    });
    assert!(!pushed_all, "a closed queue returns false");
    drop(server);
}

pub fn finish_sends_everything_before_it_closes(testbed: &dyn Testbed) {
    let (client, mut server) = testbed.connect();
    let (send_queue, lost) = send_queue(client.sink, client.closer.clone());
    for number in 0..64 {
        send_queue.push(frame(0, number, DATA_BYTES_MAX), Class::Bulk);
    }
    std::thread::scope(|scope| {
        scope.spawn(|| assert!(send_queue.finish(PATIENCE)));
        for number in 0..64 {
            assert_eq!(receive(&mut server.source), (0, number));
        }
    });
    drop((send_queue, client.source));
    assert!(server.source.receive().unwrap().is_none());
    assert!(lost.recv().is_err(), "our own close is no loss");
    assert!(!client.closer.is_aborted());
}

pub fn a_clean_close_is_no_error(testbed: &dyn Testbed) {
    let (mut client, server) = testbed.connect();
    server.closer.close();
    drop(server);
    assert!(matches!(client.source.receive(), Ok(None)));
    let (client, mut server) = testbed.connect();
    client.closer.close();
    drop(client);
    assert!(matches!(server.source.receive(), Ok(None)));
}

pub fn close_within_a_message_is_an_error(testbed: &dyn Testbed) {
    let (client, mut server) = testbed.connect();
    let (send_queue, _lost) = send_queue(client.sink, client.closer);
    send_queue.push(frame(0, 0, 5), Class::Urgent);
    let mut torn = frame(0, 1, DATA_BYTES_MAX);
    torn.data.truncate(1000);
    send_queue.push(torn, Class::Urgent);
    assert!(send_queue.finish(PATIENCE));
    drop((send_queue, client.source));
    assert_eq!(receive(&mut server.source), (0, 0));
    match server.source.receive() {
        Err(CarrierLost::Cut { received_bytes }) => assert_eq!(received_bytes, 1011),
        other => panic!("{other:?}"),
    }
}

pub fn invalid_lengths_are_faults_of_the_peer(testbed: &dyn Testbed) {
    for size in [0, 6, MESSAGE_BYTES_MAX as u32 + 1, u32::MAX] {
        let (client, mut server) = testbed.connect();
        let (send_queue, _lost) = send_queue(client.sink, client.closer);
        send_queue.push(frame(0, 0, 5), Class::Urgent);
        let mut lying = frame(0, 1, 50);
        lying.head[..4].copy_from_slice(&size.to_le_bytes());
        send_queue.push(lying, Class::Urgent);
        send_queue.flush();
        assert_eq!(receive(&mut server.source), (0, 0), "what came before counts");
        for _ in 0..2 {
            match server.source.receive() {
                Err(CarrierLost::FramingError(fault)) => assert_eq!(fault.size_bytes, size),
                other => panic!("{other:?}"),
            }
        }
    }
}

pub fn closing_wakes_a_receiver(testbed: &dyn Testbed) {
    for closes_client in [true, false] {
        let (client, server) = testbed.connect();
        let (closed, other) = if closes_client { (client, server) } else { (server, client) };
        let Carrier { mut source, closer, sink, .. } = closed;
        std::thread::scope(|scope| {
            let receiver = scope.spawn(move || (source.receive(), source.receive()));
            closer.close();
            let (first, second) = receiver.join().unwrap();
            assert!(matches!(first, Err(CarrierLost::Closed)), "{first:?}");
            assert!(matches!(second, Err(CarrierLost::Closed)), "{second:?}");
        });
        drop((sink, other));
    }
}

pub fn closing_wakes_a_blocked_sender(testbed: &dyn Testbed) {
    for closes_client in [true, false] {
        let (client, server) = testbed.connect();
        let (closed, other) = if closes_client { (client, server) } else { (server, client) };
        let Carrier { mut sink, closer, source, .. } = closed;
        let (notify, notified) = mpsc::channel();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(move || {
                loop {
                    match fill(&mut sink).and_then(|()| {
                        notify.send(()).unwrap();
                        sink.wait_writable(PATIENCE)
                    }) {
                        Ok(true) => {}
                        Ok(false) => panic!("was not woken"),
                        Err(lost) => return lost,
                    }
                }
            });
            notified.recv().unwrap();
            closer.close();
            let lost = waiter.join().unwrap();
            assert!(matches!(lost, CarrierLost::Closed), "{lost:?}");
        });
        drop((source, other));
    }
}

pub fn vanished_peer_is_reported_once(testbed: &dyn Testbed) {
    let (client, server) = testbed.connect();
    let (send_queue, lost) = send_queue(client.sink, client.closer.clone());
    server.closer.close();
    drop(server);
    let mut number = 0;
    while lost.try_recv().is_err() {
        send_queue.push(frame(0, number, DATA_BYTES_MAX), Class::Bulk);
        send_queue.flush();
        number += 1;
        assert!(number < 10_000_000, "the loss is never noticed");
    }
    assert!(lost.recv().is_err(), "notified twice");
    assert!(client.closer.is_aborted(), "it is dead, and was not closed here");
    assert_eq!(send_queue.queued_bytes(), 0);
    assert!(!send_queue.push_wait(frame(0, number, 1), Class::Urgent));
}

pub fn connecting_again_works(testbed: &dyn Testbed) {
    for round in 0..3 {
        let (client, mut server) = testbed.connect();
        let (send_queue, _lost) = send_queue(client.sink, client.closer);
        send_queue.push(frame(7, round, 10), Class::Urgent);
        send_queue.flush();
        assert_eq!(receive(&mut server.source), (7, round));
    }
}
