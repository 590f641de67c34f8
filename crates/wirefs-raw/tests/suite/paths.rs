//! Path MTUs: packets that pass unfragmented, and larger ones.

use std::net::IpAddr;
use std::time::Duration;

use wirefs_lab::{Host, Lab};
use wirefs_raw::{Blocked, EchoSequence, EchoSocket, PacketBatch, RawError};

use crate::site::{IDENT, allow_ipv6, ip, open, receive_all, send, wait};

const PATIENCE: Duration = Duration::from_millis(300);

/// Three hosts in a row; the second link has this MTU. Returns the addresses of the last host.
fn row(lab: &Lab, mtu: u32) -> (Host, [IpAddr; 2]) {
    let [near, middle, far] = ["near", "middle", "far"].map(|name| lab.host(name).unwrap());
    [&near, &middle, &far].into_iter().for_each(allow_ipv6);
    let (first, second) = (lab.patch(&near, &middle).unwrap(), lab.patch(&middle, &far).unwrap());
    for (host, device, address) in [
        (&near, &first.device, "fd00:1::1"),
        (&middle, &first.device, "fd00:1::2"),
        (&middle, &second.device, "fd00:2::1"),
        (&far, &second.device, "fd00:2::2"),
    ] {
        ip(host, &format!("addr add {address}/64 dev {device} nodad"));
    }
    for host in [&middle, &far] {
        ip(host, &format!("link set {} mtu {mtu}", second.device));
    }
    let forward = || {
        for setting in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            std::fs::write(format!("/proc/sys/net/{setting}"), "1").unwrap();
        }
    };
    middle.run(forward).unwrap();
    ip(&near, &format!("route add default via {}", first.address_b));
    ip(&near, "-6 route add default via fd00:1::2");
    ip(&far, &format!("route add default via {}", second.address_a));
    ip(&far, "-6 route add default via fd00:2::1");
    (near, [IpAddr::V4(second.address_b), "fd00:2::2".parse().unwrap()])
}

#[test]
fn path_mtu_below_the_device_mtu_is_measured() {
    let lab = Lab::new("mtu").unwrap();
    let (near, addresses) = row(&lab, 1_403);
    let measure = || {
        for address in addresses {
            let socket = open(address, IDENT);
            assert_eq!(socket.route_mtu().unwrap(), 1_500, "{address}");
            let mtu = socket.measure_mtu(PATIENCE).unwrap();
            assert_eq!(mtu, 1_403, "{address}");
            let full = vec![1; socket.payload_bytes(mtu)];
            send(&socket, [full.as_slice()]);
            assert!(wait(&socket));
            assert_eq!(receive_all(&socket), [full], "{address}");
        }
    };
    near.run(measure).unwrap();
}

#[test]
fn packet_larger_than_the_mtu_is_discarded_and_the_rest_is_sent() {
    let lab = Lab::new("large").unwrap();
    let (near, addresses) = row(&lab, 1_500);
    let exchange = || {
        for address in addresses {
            let socket = open(address, IDENT);
            assert_eq!(socket.measure_mtu(PATIENCE).unwrap(), 1_500);
            let max = socket.payload_bytes(1_500);
            let mut batch = PacketBatch::new(max + 1);
            for bytes in [max, max + 1, 10] {
                batch.push(|_| Some((bytes, EchoSequence(1))));
            }
            let departures = socket.send(&mut batch).unwrap();
            assert_eq!((departures.packets, departures.too_large), (2, 1), "{address}");
            assert!(batch.is_sent());
            assert!(wait(&socket));
            let lengths: Vec<usize> = receive_all(&socket).iter().map(Vec::len).collect();
            assert_eq!(lengths, [max, 10], "{address}");
        }
    };
    near.run(exchange).unwrap();
}

#[test]
fn silent_host_is_named_in_the_error() {
    let lab = Lab::new("mute").unwrap();
    let (near, [address, _]) = row(&lab, 1_500);
    let IpAddr::V4(address) = address else { panic!("{address}") };
    let [a, b, c, _] = address.octets();
    let measure = || {
        let unused_address = IpAddr::from([a, b, c, 99]);
        let error = open(unused_address, IDENT).measure_mtu(Duration::from_millis(20)).unwrap_err();
        assert!(matches!(error, RawError::NoAnswer { host } if host == unused_address), "{error}");
        let nowhere = EchoSocket::open("[fd00:77::1]:0".parse().unwrap(), IDENT);
        assert!(nowhere.is_ok(), "there is a default route");
    };
    near.run(measure).unwrap();
}

#[test]
fn host_without_a_route_is_named_in_the_error() {
    crate::site::on_a_host("island", || {
        for host in ["192.0.2.1:0", "[2001:db8::1]:0"] {
            let error = EchoSocket::open(host.parse().unwrap(), IDENT).unwrap_err();
            assert!(matches!(error, RawError::Unreachable { .. }), "{error}");
        }
    });
}

#[test]
fn full_queue_is_reported_and_loses_no_packet() {
    let lab = Lab::new("queue").unwrap();
    let [near, far] = ["near", "far"].map(|name| lab.host(name).unwrap());
    let patch = lab.patch(&near, &far).unwrap();
    // A device with 20 Mbit/s and room for ten packets.
    let limit = format!("qdisc add dev {} root tbf rate 20mbit burst 3000 limit 15000", patch.device);
    let status = near.command("tc").args(limit.split_whitespace()).status().unwrap();
    assert!(status.success(), "tc {limit}");
    let flood = || {
        let socket = open(patch.address_b.into(), IDENT);
        socket.reserve(1_000, 1_400).unwrap();
        let mut batch = PacketBatch::new(1_400);
        let (mut sent, mut blocked) = (0, 0);
        while sent < 500 {
            batch.clear();
            while sent < 500 && batch.push(|_| Some((1_400, EchoSequence(1)))) {
                sent += 1;
            }
            while !batch.is_sent() {
                let departures = socket.send(&mut batch).unwrap();
                if let Some(why) = departures.blocked {
                    assert!(matches!(why, Blocked::Full), "{why:?}");
                    blocked += 1;
                }
            }
        }
        assert!(blocked > 0);
        let mut back = 0;
        while back < 500 && wait(&socket) {
            back += receive_all(&socket).len();
        }
        assert_eq!(back, 500);
    };
    near.run(flood).unwrap();
}
