//! Tests of carriers over Ethernet only.

use std::io::ErrorKind;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use wirefs_carrier::ether::{EtherAddress, EtherDial, EtherError, HardwareAddress};
use wirefs_carrier::limits::CONNECT_TIMEOUT;
use wirefs_carrier::tls::{Identity, KnownHosts};
use wirefs_carrier::{AcceptError, Carrier, Class, Dial, DialError, ListenError};
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_raw::{EtherSocket, Frames};

use crate::scratch::Scratch;
use crate::testbeds::{Ether, Testbed, ip};
use crate::traffic::{PATIENCE, frame, receive, send_queue};

const ETHER_TYPE: u16 = 0x88B5;

#[test]
fn unauthorized_client_gets_the_line_to_add_and_connects_after_it_is_added() {
    let scratch = Scratch::new();
    std::fs::write(scratch.join("authorized_keys"), "# empty\n").unwrap();
    let testbed = Ether::without_keys(scratch, 1, 1_500);
    let line = Identity::open(&testbed.scratch.join("client")).unwrap().line();
    std::thread::scope(|scope| {
        let dialed = scope.spawn(|| testbed.dial.dial());
        match testbed.listener.accept().unwrap().finish(PATIENCE) {
            Err(AcceptError::UnknownKey { line: notified, peer, .. }) => {
                assert_eq!(notified.split(' ').nth(1), line.split(' ').nth(1));
                assert!(peer.starts_with("ether://"), "{peer}");
            }
            other => panic!("{other:?}"),
        }
        match dialed.join().unwrap() {
            Err(DialError::Refused { line: notified }) => assert_eq!(notified, line),
            other => panic!("{other:?}"),
        }
    });
    std::fs::write(testbed.scratch.join("authorized_keys"), format!("{line}\n")).unwrap();
    let (client, server) = testbed.connect();
    assert_eq!(client.peer.carrier, "ether");
    assert_eq!(
        server.peer.identity,
        Some(Identity::open(&testbed.scratch.join("client")).unwrap().public_key())
    );
}

#[test]
fn close_without_a_refusal_is_no_refused_key() {
    let testbed = Ether::new();
    std::thread::scope(|scope| {
        let dialed = scope.spawn(|| testbed.dial.dial());
        drop(testbed.listener.accept().unwrap());
        match dialed.join().unwrap() {
            Err(DialError::Connect { error, .. }) => assert_eq!(error.kind(), ErrorKind::ConnectionAborted),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn first_connection_pins_the_server_and_another_key_is_refused() {
    let testbed = Ether::new();
    let (client, _server) = testbed.connect();
    let known = testbed.scratch.join("client/known_hosts");
    assert_eq!(client.peer.pinned_in.as_ref(), Some(&known));
    assert_eq!(testbed.connect().0.peer.pinned_in, None);
    let text = std::fs::read_to_string(&known).unwrap();
    let other = Identity::open(&testbed.scratch.join("other")).unwrap();
    let host = text.split(' ').next().unwrap();
    std::fs::write(&known, format!("{host} {}\n", other.line())).unwrap();
    match testbed.dial.dial() {
        Err(DialError::HostKeyChanged { known, line, .. }) => {
            assert_eq!((known, line), (other.public_key().fingerprint(), 1));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn card_has_one_server_and_a_dialing_node_answers_no_handshake() {
    let testbed = Ether::new();
    let second = testbed.hosts[1].run(|| Ether::listen(&testbed.scratch, &testbed.patches)).unwrap();
    match second {
        Err(ListenError::Ether(EtherError::ReadOutcome { card })) => {
            assert_eq!(card, testbed.patches[0].device)
        }
        other => panic!("{other:?}"),
    }
    // From the server's host to the client's, where only a dialing node has the card.
    let device = &testbed.patches[0].device;
    let near = testbed.hosts[0].run(|| EtherSocket::open(device, ETHER_TYPE + 1).unwrap().address()).unwrap();
    let place = EtherAddress { remotes: vec![near], cards: vec![device.clone()] };
    let identity = Arc::new(Identity::open(&testbed.scratch.join("other")).unwrap());
    let known = KnownHosts::new(testbed.scratch.join("other/known_hosts"));
    let dial = testbed.hosts[1].run(|| EtherDial::open(place, identity, known, CONNECT_TIMEOUT)).unwrap();
    match dial.unwrap().dial() {
        Err(DialError::Connect { error, .. }) => assert_eq!(error.kind(), ErrorKind::TimedOut),
        other => panic!("{other:?}"),
    }
}

#[test]
fn unusable_cards_are_reported() {
    let scratch = Scratch::new();
    let identity = Arc::new(Identity::open(&scratch.join("client")).unwrap());
    let open = |remotes: Vec<HardwareAddress>| {
        let place = EtherAddress { remotes, cards: vec!["eth77".into()] };
        let known = KnownHosts::new(scratch.join("known_hosts"));
        EtherDial::open(place, Arc::clone(&identity), known, CONNECT_TIMEOUT).unwrap_err()
    };
    let error = open(vec![HardwareAddress([2, 0, 0, 0, 0, 1])]);
    assert!(matches!(error, DialError::Ether(EtherError::Card(_))) && error.to_string().contains("eth77"));
    assert!(matches!(open(Vec::new()), DialError::NoPeer { .. }));
}

/// Sends the largest frames, and reads them meanwhile; calls `received` for each.
fn transfer(ends: (Carrier, Carrier), frames: u32, mut received: impl FnMut(u32)) {
    let (client, mut server) = ends;
    let (out, _lost) = send_queue(client.sink, client.closer);
    // The reader has all of the server's end: if it fails, the circuit ends, and with it the sender's wait.
    std::thread::scope(move |scope| {
        let pushing = out.clone();
        scope.spawn(move || {
            for number in 0..frames {
                assert!(pushing.push_wait(frame(5, number, DATA_BYTES_MAX), Class::Bulk));
                pushing.flush();
            }
        });
        for number in 0..frames {
            assert_eq!(receive(&mut server.source), (5, number));
            received(number);
        }
    });
}

#[test]
fn cable_pulled_during_a_transfer_loses_nothing() {
    let testbed = Ether::with(2, 1_500);
    let device = &testbed.patches[0].device;
    transfer(testbed.connect(), 400, |number| match number {
        100 => ip(&testbed.hosts[1], &format!("link set {device} down")),
        250 => ip(&testbed.hosts[1], &format!("link set {device} up")),
        _ => {}
    });
}

#[test]
fn jumbo_frames_are_used_if_the_cards_support_them() {
    const FRAMES: u32 = 100;
    // If the machine stalls longer than a path's timeout, the path uses small packets for a second.
    const TRIES: usize = 10;
    let testbed = Ether::with(1, 9_000);
    // Some frames are sent before the MTU is known.
    let small = u64::from(FRAMES) * DATA_BYTES_MAX as u64 / 1_500;
    let mut all = Vec::new();
    while all.last().is_none_or(|taken| *taken >= small / 3) && all.len() < TRIES {
        let ends = testbed.connect();
        let before = testbed.listener.counters().unwrap().taken;
        transfer(ends, FRAMES, |_| ());
        all.push(testbed.listener.counters().unwrap().taken - before);
    }
    assert!(
        all.last().is_some_and(|taken| *taken < small / 3),
        "{all:?} packets, where small ones are {small}"
    );
}

#[test]
fn foreign_packets_are_counted_and_disturb_no_connection() {
    let testbed = Ether::new();
    let device = &testbed.patches[0].device;
    let unknown = testbed.hosts[0].run(|| EtherSocket::open(device, ETHER_TYPE).unwrap()).unwrap();
    let to = testbed.listener.hardware()[0];
    let ends = testbed.connect();
    let mut noise = Frames::new(1_500);
    let before = testbed.listener.counters().unwrap();
    transfer(ends, 60, |number| {
        noise.clear();
        for at in 0..16u8 {
            noise.push(|room| {
                // Some look like packets of a group, some like handshakes.
                room[..200].fill(at.wrapping_mul(17).wrapping_add(number as u8));
                Some((to, 200))
            });
        }
        unknown.send(&mut noise);
    });
    let after = testbed.listener.counters().unwrap();
    let refused = |counters: wirefs_carrier::ether::CircuitCounters| {
        counters.malformed + counters.unknown + counters.forged + counters.unwelcome
    };
    assert!(refused(after) > refused(before), "{after:?}");
    assert!(testbed.connect().1.peer.identity.is_some());
}

/// Several readers of one node, one of which leads at a time and passes the lead on.
#[test]
fn carriers_of_one_node_are_independent() {
    const CARRIERS: u8 = 4;
    const TRIPS: u32 = 200;
    let testbed = Ether::new();
    let ends: Vec<_> = (0..CARRIERS).map(|_| testbed.connect()).collect();
    std::thread::scope(|scope| {
        for (sender, (client, server)) in (0..CARRIERS).zip(ends) {
            let (out, _lost) = send_queue(client.sink, client.closer);
            let (back, _back_lost) = send_queue(server.sink, server.closer);
            let (mut near, mut far) = (client.source, server.source);
            scope.spawn(move || {
                for number in 0..TRIPS {
                    assert_eq!(receive(&mut far), (sender, number));
                    back.push(frame(sender, number, 10), Class::Urgent);
                    back.flush();
                }
                assert!(far.receive().unwrap().is_none());
            });
            scope.spawn(move || {
                for number in 0..TRIPS {
                    out.push(frame(sender, number, 100), Class::Urgent);
                    out.flush();
                    assert_eq!(receive(&mut near), (sender, number));
                }
                assert!(out.finish(PATIENCE));
            });
        }
    });
}

#[test]
fn peer_without_a_cable_is_detected() {
    let testbed = Ether::new();
    let (mut client, _server) = testbed.connect();
    ip(&testbed.hosts[1], &format!("link set {} down", testbed.patches[0].device));
    match client.source.receive() {
        Err(wirefs_carrier::CarrierLost::Io(error)) => assert_eq!(error.kind(), ErrorKind::TimedOut),
        other => panic!("{other:?}"),
    }
    assert!(!client.sink.wait_writable(Duration::from_secs(1)).is_ok_and(|ready| ready));
}

/// The background thread sleeps without a timeout while there is no peer; the dialing thread takes the lead from it,
/// and then no thread leads.
#[test]
fn node_ends_after_the_lead_was_taken_from_the_sleeping_background_thread() {
    for _ in 0..10 {
        let testbed = Ether::new();
        for _ in 0..5 {
            let (client, server) = testbed.connect();
            drop((server, client));
        }
        let (notify, notified) = mpsc::channel();
        std::thread::spawn(move || {
            drop(testbed);
            notify.send(()).unwrap();
        });
        notified.recv_timeout(PATIENCE).expect("the node does not end");
    }
}
