//! Paths between hosts: what passes unfragmented, and what happens to the rest.

use std::net::IpAddr;
use std::time::Duration;

use wirefs_lab::{Host, Lab};
use wirefs_raw::{Batch, Blocked, EchoSocket, RawError, Sequence};

use crate::site::{IDENT, allow_ipv6, ip, open, receive_all, send, wait};

const PATIENCE: Duration = Duration::from_millis(300);

/// Three hosts in a row; the link behind the middle one takes smaller packets. The addresses are those of the last.
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
fn path_mtu_is_found_behind_a_router_though_the_device_takes_more() {
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
fn packet_larger_than_the_device_takes_is_given_up_and_the_rest_is_sent() {
    let lab = Lab::new("large").unwrap();
    let (near, addresses) = row(&lab, 1_500);
    let exchange = || {
        for address in addresses {
            let socket = open(address, IDENT);
            assert_eq!(socket.measure_mtu(PATIENCE).unwrap(), 1_500);
            let most = socket.payload_bytes(1_500);
            let mut batch = Batch::new(most + 1);
            for bytes in [most, most + 1, 10] {
                batch.push(|_| Some((bytes, Sequence(1))));
            }
            let departures = socket.send(&mut batch).unwrap();
            assert_eq!((departures.packets, departures.too_large), (2, 1), "{address}");
            assert!(batch.is_sent());
            assert!(wait(&socket));
            let lengths: Vec<usize> = receive_all(&socket).iter().map(Vec::len).collect();
            assert_eq!(lengths, [most, 10], "{address}");
        }
    };
    near.run(exchange).unwrap();
}

#[test]
fn host_that_does_not_answer_is_named() {
    let lab = Lab::new("mute").unwrap();
    let (near, [address, _]) = row(&lab, 1_500);
    let IpAddr::V4(address) = address else { panic!("{address}") };
    let [a, b, c, _] = address.octets();
    let ask = || {
        let nobody = IpAddr::from([a, b, c, 99]);
        let error = open(nobody, IDENT).measure_mtu(Duration::from_millis(20)).unwrap_err();
        assert!(matches!(error, RawError::NoAnswer { host } if host == nobody), "{error}");
        let nowhere = EchoSocket::open("[fd00:77::1]:0".parse().unwrap(), IDENT);
        assert!(nowhere.is_ok(), "there is a default route");
    };
    near.run(ask).unwrap();
}

#[test]
fn host_without_a_route_is_named() {
    crate::site::on_a_host("island", || {
        for host in ["192.0.2.1:0", "[2001:db8::1]:0"] {
            let error = EchoSocket::open(host.parse().unwrap(), IDENT).unwrap_err();
            assert!(matches!(error, RawError::Unreachable { .. }), "{error}");
        }
    });
}

#[test]
fn full_queue_is_told_and_no_packet_is_lost_in_it() {
    let lab = Lab::new("queue").unwrap();
    let [near, far] = ["near", "far"].map(|name| lab.host(name).unwrap());
    let patch = lab.patch(&near, &far).unwrap();
    // A device that sends 20 Mbit/s, with room for ten packets.
    let limit = format!("qdisc add dev {} root tbf rate 20mbit burst 3000 limit 15000", patch.device);
    let status = near.command("tc").args(limit.split_whitespace()).status().unwrap();
    assert!(status.success(), "tc {limit}");
    let flood = || {
        let socket = open(patch.address_b.into(), IDENT);
        socket.reserve(1_000, 1_400).unwrap();
        let mut batch = Batch::new(1_400);
        let (mut sent, mut blocked) = (0, 0);
        while sent < 500 {
            batch.clear();
            while sent < 500 && batch.push(|_| Some((1_400, Sequence(1)))) {
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
