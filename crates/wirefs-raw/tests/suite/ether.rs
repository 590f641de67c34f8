//! Frames between two hosts joined by veth.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirefs_lab::{Host, Lab, Patch};
use wirefs_raw::{Blocked, EtherSocket, Frames, HardwareAddress, RawError, Ring};

use crate::site::ip;

/// Local experimental EtherType (IEEE 802).
pub(crate) const ETHER_TYPE: u16 = 0x88B5;

/// Two hosts and a cable with this MTU.
pub(crate) fn cable(lab: &Lab, mtu: usize) -> ([Host; 2], Patch) {
    let hosts = ["near", "far"].map(|name| lab.host(name).unwrap());
    let [near, far] = &hosts;
    let patch = lab.patch(near, far).unwrap();
    hosts.iter().for_each(|host| ip(host, &format!("link set {} mtu {mtu}", patch.device)));
    (hosts, patch)
}

pub(crate) fn open(host: &Host, device: &str, ether_type: u16) -> EtherSocket {
    host.run(|| EtherSocket::open(device, ether_type)).unwrap().unwrap()
}

/// Waits until a frame can be received, for at most a second.
fn wait(socket: &EtherSocket) -> bool {
    let timeout = Timespec::try_from(Duration::from_secs(1)).unwrap();
    poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timeout)).unwrap() > 0
}

fn send(socket: &EtherSocket, to: HardwareAddress, payloads: &[&[u8]]) -> wirefs_raw::Departures {
    let mut frames = Frames::new(9_216);
    for payload in payloads {
        assert!(frames.push(|room| {
            room[..payload.len()].copy_from_slice(payload);
            Some((to, payload.len()))
        }));
    }
    let departures = socket.send(&mut frames);
    assert_eq!(frames.is_sent(), departures.blocked.is_none());
    departures
}

fn received(socket: &EtherSocket) -> Vec<(HardwareAddress, Vec<u8>)> {
    let mut frames = Frames::new(9_216);
    let mut all = Vec::new();
    while wait(socket) {
        socket.receive(&mut frames).unwrap();
        frames.each(|source, payload| all.push((source, payload.to_vec())));
        if !all.is_empty() {
            break;
        }
    }
    all
}

#[test]
fn only_frames_of_the_type_arrive_with_their_source() {
    let lab = Lab::new("ether").unwrap();
    let (hosts, patch) = cable(&lab, 9_000);
    let [near, far] = hosts.each_ref().map(|host| open(host, &patch.device, ETHER_TYPE));
    let other = open(&hosts[0], &patch.device, ETHER_TYPE + 1);
    assert_ne!(near.address(), far.address());
    assert_eq!((near.mtu().unwrap(), far.mtu().unwrap()), (9_000, 9_000));
    let long = vec![7; 9_000];
    send(&other, far.address(), &[b"of another type"]);
    send(&near, HardwareAddress([2, 9, 9, 9, 9, 9]), &[b"for another host"]);
    assert_eq!(send(&near, far.address(), &[b"short", &long]).packets, 2);
    let expected = [(near.address(), b"short".to_vec()), (near.address(), long)];
    assert_eq!(received(&far), expected);
}

#[test]
fn oversized_frame_is_reported_and_the_rest_is_sent() {
    let lab = Lab::new("ether-large").unwrap();
    let (hosts, patch) = cable(&lab, 1_500);
    let [near, far] = hosts.each_ref().map(|host| open(host, &patch.device, ETHER_TYPE));
    let departures = send(&near, far.address(), &[b"one", &[1; 1_501], b"two"]);
    assert_eq!((departures.packets, departures.too_large), (2, 1));
    let payloads: Vec<Vec<u8>> = received(&far).into_iter().map(|(_, payload)| payload).collect();
    assert_eq!(payloads, [b"one".to_vec(), b"two".to_vec()]);
}

#[test]
fn interface_that_is_down_fails_to_send_and_receives_nothing() {
    let lab = Lab::new("ether-down").unwrap();
    let (hosts, patch) = cable(&lab, 1_500);
    let near = open(&hosts[0], &patch.device, ETHER_TYPE);
    ip(&hosts[0], &format!("link set {} down", patch.device));
    let departures = send(&near, near.address(), &[b"into the void"]);
    assert!(matches!(departures.blocked, Some(Blocked::Refused(_))), "{departures:?}");
    let arrivals = near.receive(&mut Frames::new(1_500)).unwrap();
    assert_eq!((arrivals.frames, arrivals.is_drained), (0, true));
}

#[test]
fn missing_or_foreign_interface_is_named_in_the_error() {
    crate::site::on_a_host("ether-none", || {
        let error = EtherSocket::open("eth77", ETHER_TYPE).unwrap_err();
        assert!(matches!(&error, RawError::NoInterface { interface } if interface == "eth77"), "{error}");
        let error = EtherSocket::open("lo", ETHER_TYPE).unwrap_err();
        assert!(matches!(error, RawError::NotEthernet { .. }), "{error}");
    });
}

#[test]
fn ring_delivers_each_frame_once_in_order() {
    for mtu in [1_500, 9_000] {
        let lab = Lab::new("ether-ring").unwrap();
        let (hosts, patch) = cable(&lab, mtu);
        let [near, far] = hosts.each_ref().map(|host| open(host, &patch.device, ETHER_TYPE));
        // Two blocks, so that the ring wraps several times.
        let mut ring = Ring::open(&far, mtu, 1 << 17).unwrap();
        assert!(!ring.is_ready());
        send(&near, HardwareAddress([2, 9, 9, 9, 9, 9]), &[b"for another host"]);
        let mut expected = 0u32;
        for round in 0..40u32 {
            let payloads: Vec<Vec<u8>> = (0..10)
                .map(|at| [&(round * 10 + at).to_le_bytes()[..], &vec![7; mtu - 4]].concat())
                .collect();
            send(&near, far.address(), &payloads.iter().map(Vec::as_slice).collect::<Vec<_>>());
            while expected < (round + 1) * 10 {
                if !ring.is_ready() {
                    assert!(wait(&far), "frame {expected} never came");
                }
                ring.each(64, |source, payload| {
                    assert_eq!(source, near.address());
                    assert_eq!(payload.len(), mtu);
                    assert_eq!(payload[..4], expected.to_le_bytes());
                    expected += 1;
                });
            }
        }
        assert!(!ring.is_ready());
    }
}

#[test]
fn dropped_capability_is_gone_and_open_sockets_keep_working() {
    let lab = Lab::new("ether-right").unwrap();
    let (hosts, patch) = cable(&lab, 1_500);
    let far = open(&hosts[1], &patch.device, ETHER_TYPE);
    let near = hosts[0].run(|| {
        let socket = EtherSocket::open(&patch.device, ETHER_TYPE).unwrap();
        assert!(wirefs_raw::has_net_raw());
        wirefs_raw::drop_net_raw().unwrap();
        assert!(!wirefs_raw::has_net_raw());
        let refused = EtherSocket::open(&patch.device, ETHER_TYPE);
        assert!(matches!(refused, Err(RawError::NotPermitted)), "{refused:?}");
        socket
    });
    send(&near.unwrap(), far.address(), &[b"still there"]);
    assert_eq!(received(&far).len(), 1);
}
