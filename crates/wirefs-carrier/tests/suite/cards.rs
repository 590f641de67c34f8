//! What only carriers over Ethernet do.

use std::io::ErrorKind;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use wirefs_carrier::ether::{EtherDial, EtherError, EtherPlace, HardwareAddress};
use wirefs_carrier::limits::CONNECT_TIMEOUT;
use wirefs_carrier::tls::{Identity, KnownHosts};
use wirefs_carrier::{AcceptError, Carrier, Class, Dial, DialError, ListenError};
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_raw::{EtherSocket, Frames};

use crate::scratch::Scratch;
use crate::traffic::{PATIENCE, frame, outbox, receive};
use crate::worlds::{Ether, World, ip};

const ETHER_TYPE: u16 = 0x88B5;

#[test]
fn a_stranger_is_told_the_line_to_add_and_may_enter_once_it_is_there() {
    let scratch = Scratch::new();
    std::fs::write(scratch.join("authorized_keys"), "# nobody\n").unwrap();
    let world = Ether::strangers(scratch, 1, 1_500);
    let line = Identity::open(&world.scratch.join("client")).unwrap().line();
    std::thread::scope(|scope| {
        let dialled = scope.spawn(|| world.dial.dial());
        match world.listener.accept().unwrap().finish(PATIENCE) {
            Err(AcceptError::UnknownKey { line: told, peer, .. }) => {
                assert_eq!(told.split(' ').nth(1), line.split(' ').nth(1));
                assert!(peer.starts_with("ether://"), "{peer}");
            }
            other => panic!("{other:?}"),
        }
        match dialled.join().unwrap() {
            Err(DialError::Refused { line: told }) => assert_eq!(told, line),
            other => panic!("{other:?}"),
        }
    });
    std::fs::write(world.scratch.join("authorized_keys"), format!("{line}\n")).unwrap();
    let (client, server) = world.connect();
    assert_eq!(client.peer.carrier, "ether");
    assert_eq!(
        server.peer.identity,
        Some(Identity::open(&world.scratch.join("client")).unwrap().public_key())
    );
}

#[test]
fn a_server_that_closes_without_a_word_has_not_refused_the_key() {
    let world = Ether::new();
    std::thread::scope(|scope| {
        let dialled = scope.spawn(|| world.dial.dial());
        drop(world.listener.accept().unwrap());
        match dialled.join().unwrap() {
            Err(DialError::Connect { error, .. }) => assert_eq!(error.kind(), ErrorKind::ConnectionAborted),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn the_first_meeting_pins_the_server_and_another_key_is_refused_later() {
    let world = Ether::new();
    let (client, _server) = world.connect();
    let known = world.scratch.join("client/known_hosts");
    assert_eq!(client.peer.pinned_in.as_ref(), Some(&known));
    assert_eq!(world.connect().0.peer.pinned_in, None);
    let text = std::fs::read_to_string(&known).unwrap();
    let other = Identity::open(&world.scratch.join("other")).unwrap();
    let host = text.split(' ').next().unwrap();
    std::fs::write(&known, format!("{host} {}\n", other.line())).unwrap();
    match world.dial.dial() {
        Err(DialError::HostKeyChanged { known, line, .. }) => {
            assert_eq!((known, line), (other.public_key().fingerprint(), 1));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_card_has_one_server_and_a_node_that_only_dials_answers_nobody() {
    let world = Ether::new();
    let second = world.hosts[1].run(|| Ether::listen(&world.scratch, &world.patches)).unwrap();
    match second {
        Err(ListenError::Ether(EtherError::Taken { card })) => assert_eq!(card, world.patches[0].device),
        other => panic!("{other:?}"),
    }
    // From the server's host to the client's, where only a dialling node has the card.
    let device = &world.patches[0].device;
    let near = world.hosts[0].run(|| EtherSocket::open(device, ETHER_TYPE + 1).unwrap().address()).unwrap();
    let place = EtherPlace { remotes: vec![near], cards: vec![device.clone()] };
    let identity = Arc::new(Identity::open(&world.scratch.join("other")).unwrap());
    let known = KnownHosts::new(world.scratch.join("other/known_hosts"));
    let dial = world.hosts[1].run(|| EtherDial::open(place, identity, known, CONNECT_TIMEOUT)).unwrap();
    match dial.unwrap().dial() {
        Err(DialError::Connect { error, .. }) => assert_eq!(error.kind(), ErrorKind::TimedOut),
        other => panic!("{other:?}"),
    }
}

#[test]
fn cards_that_cannot_be_used_are_named() {
    let scratch = Scratch::new();
    let identity = Arc::new(Identity::open(&scratch.join("client")).unwrap());
    let open = |remotes: Vec<HardwareAddress>| {
        let place = EtherPlace { remotes, cards: vec!["eth77".into()] };
        let known = KnownHosts::new(scratch.join("known_hosts"));
        EtherDial::open(place, Arc::clone(&identity), known, CONNECT_TIMEOUT).unwrap_err()
    };
    let error = open(vec![HardwareAddress([2, 0, 0, 0, 0, 1])]);
    assert!(matches!(error, DialError::Ether(EtherError::Card(_))) && error.to_string().contains("eth77"));
    assert!(matches!(open(Vec::new()), DialError::NoPeer { .. }));
}

/// Sends the largest frames, and reads them meanwhile; tells of each that came.
fn transfer(ends: (Carrier, Carrier), frames: u32, mut came: impl FnMut(u32)) {
    let (client, mut server) = ends;
    let (out, _lost) = outbox(client.sink, client.closer);
    // The reader has all of the server's end: if it fails the circuit ends, and with it the wait of who pushes.
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
            came(number);
        }
    });
}

#[test]
fn a_cable_that_is_pulled_in_a_transfer_takes_nothing_with_it() {
    let world = Ether::with(2, 1_500);
    let device = &world.patches[0].device;
    transfer(world.connect(), 400, |number| match number {
        100 => ip(&world.hosts[1], &format!("link set {device} down")),
        250 => ip(&world.hosts[1], &format!("link set {device} up")),
        _ => {}
    });
}

#[test]
fn jumbo_frames_are_used_where_the_cards_carry_them() {
    const FRAMES: u32 = 100;
    // Where the machine stops for longer than a path is patient, it goes back to small ones for a second.
    const TRIES: usize = 10;
    let world = Ether::with(1, 9_000);
    // Some are sent before it is known what the cards carry.
    let small = u64::from(FRAMES) * DATA_BYTES_MAX as u64 / 1_500;
    let mut all = Vec::new();
    while all.last().is_none_or(|taken| *taken >= small / 3) && all.len() < TRIES {
        let ends = world.connect();
        let before = world.listener.counters().unwrap().taken;
        transfer(ends, FRAMES, |_| ());
        all.push(world.listener.counters().unwrap().taken - before);
    }
    assert!(
        all.last().is_some_and(|taken| *taken < small / 3),
        "{all:?} packets, where small ones are {small}"
    );
}

#[test]
fn noise_of_strangers_is_counted_and_disturbs_nobody() {
    let world = Ether::new();
    let device = &world.patches[0].device;
    let stranger = world.hosts[0].run(|| EtherSocket::open(device, ETHER_TYPE).unwrap()).unwrap();
    let to = world.listener.hardware()[0];
    let ends = world.connect();
    let mut noise = Frames::new(1_500);
    let before = world.listener.counters().unwrap();
    transfer(ends, 60, |number| {
        noise.clear();
        for at in 0..16u8 {
            noise.push(|room| {
                // Some look like packets of a group, some like handshakes.
                room[..200].fill(at.wrapping_mul(17).wrapping_add(number as u8));
                Some((to, 200))
            });
        }
        stranger.send(&mut noise);
    });
    let after = world.listener.counters().unwrap();
    let refused = |counters: wirefs_carrier::ether::Counters| {
        counters.malformed + counters.unknown + counters.forged + counters.unwelcome
    };
    assert!(refused(after) > refused(before), "{after:?}");
    assert!(world.connect().1.peer.identity.is_some());
}

/// Several readers of one node, of which one leads at a time; whoever leaves hands the lead on.
#[test]
fn carriers_of_one_node_do_not_wait_for_each_other() {
    const CARRIERS: u8 = 4;
    const TRIPS: u32 = 200;
    let world = Ether::new();
    let ends: Vec<_> = (0..CARRIERS).map(|_| world.connect()).collect();
    std::thread::scope(|scope| {
        for (sender, (client, server)) in (0..CARRIERS).zip(ends) {
            let (out, _lost) = outbox(client.sink, client.closer);
            let (back, _back_lost) = outbox(server.sink, server.closer);
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
fn a_peer_whose_cable_is_gone_is_found_out() {
    let world = Ether::new();
    let (mut client, _server) = world.connect();
    ip(&world.hosts[1], &format!("link set {} down", world.patches[0].device));
    match client.source.receive() {
        Err(wirefs_carrier::CarrierLost::Io(error)) => assert_eq!(error.kind(), ErrorKind::TimedOut),
        other => panic!("{other:?}"),
    }
    assert!(!client.sink.wait_writable(Duration::from_secs(1)).is_ok_and(|ready| ready));
}

/// The keeper sleeps without end while there is no peer; who dials takes the lead from it, and leaves it to nobody.
#[test]
fn a_node_ends_though_the_lead_was_taken_from_its_keeper_in_its_sleep() {
    for _ in 0..10 {
        let world = Ether::new();
        for _ in 0..5 {
            let (client, server) = world.connect();
            drop((server, client));
        }
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            drop(world);
            tell.send(()).unwrap();
        });
        told.recv_timeout(PATIENCE).expect("the node does not end");
    }
}
